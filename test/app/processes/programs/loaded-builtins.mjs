/** Writes the names of Node's loaded modules into the file LOADED_MODULES when the process ends. */
process.once('exit', () => {
  process
    .getBuiltinModule('node:fs')
    .writeFileSync(process.env.LOADED_MODULES, process.moduleLoadList.join('\n'));
});
