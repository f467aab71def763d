/**
 * The countries of the providers' regions. The table has what the providers document, and says nothing about the law that applies to
 * data. Add a region when its provider opens it.
 */

/** Provider id → country (ISO 3166-1 alpha-2) → codes of its regions. */
const COUNTRIES: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  // GCP
  1: {
    AU: 'australia-southeast1 australia-southeast2',
    BE: 'europe-west1',
    BR: 'southamerica-east1',
    CA: 'northamerica-northeast1 northamerica-northeast2',
    CH: 'europe-west6',
    CL: 'southamerica-west1',
    DE: 'europe-west10 europe-west3',
    ES: 'europe-southwest1',
    FI: 'europe-north1',
    FR: 'europe-west9',
    GB: 'europe-west2',
    HK: 'asia-east2',
    ID: 'asia-southeast2',
    IL: 'me-west1',
    IN: 'asia-south1 asia-south2',
    IT: 'europe-west12 europe-west8',
    JP: 'asia-northeast1 asia-northeast2',
    KR: 'asia-northeast3',
    MX: 'northamerica-south1',
    NL: 'europe-west4',
    PL: 'europe-central2',
    QA: 'me-central1',
    SA: 'me-central2',
    SE: 'europe-north2',
    SG: 'asia-southeast1',
    TH: 'asia-southeast3',
    TW: 'asia-east1',
    US: 'us-central1 us-east1 us-east4 us-east5 us-south1 us-west1 us-west2 us-west3 us-west4',
    ZA: 'africa-south1',
  },
  // AWS
  2: {
    AE: 'me-central-1',
    AU: 'ap-southeast-2 ap-southeast-4',
    BH: 'me-south-1',
    BR: 'sa-east-1',
    CA: 'ca-central-1 ca-west-1',
    CH: 'eu-central-2',
    CN: 'cn-north-1 cn-northwest-1',
    DE: 'eu-central-1 eusc-de-east-1',
    ES: 'eu-south-2',
    FR: 'eu-west-3',
    GB: 'eu-west-2',
    HK: 'ap-east-1',
    ID: 'ap-southeast-3',
    IE: 'eu-west-1',
    IL: 'il-central-1',
    IN: 'ap-south-1 ap-south-2',
    IT: 'eu-south-1',
    JP: 'ap-northeast-1 ap-northeast-3',
    KR: 'ap-northeast-2',
    MX: 'mx-central-1',
    MY: 'ap-southeast-5',
    NZ: 'ap-southeast-6',
    SE: 'eu-north-1',
    SG: 'ap-southeast-1',
    TH: 'ap-southeast-7',
    TW: 'ap-east-2',
    US: 'us-east-1 us-east-2 us-gov-east-1 us-gov-west-1 us-west-1 us-west-2',
    ZA: 'af-south-1',
  },
  // Azure
  3: {
    AE: 'uaecentral uaenorth',
    AT: 'austriaeast',
    AU: 'australiacentral australiacentral2 australiaeast australiasoutheast',
    BE: 'belgiumcentral',
    BR: 'brazilsouth brazilsoutheast',
    CA: 'canadacentral canadaeast',
    CH: 'switzerlandnorth switzerlandwest',
    CL: 'chilecentral',
    CN: 'chinaeast chinaeast2 chinaeast3 chinanorth chinanorth2 chinanorth3',
    DE: 'germanynorth germanywestcentral',
    DK: 'denmarkeast',
    ES: 'spaincentral',
    FR: 'francecentral francesouth',
    GB: 'uksouth ukwest',
    HK: 'eastasia',
    ID: 'indonesiacentral',
    IE: 'northeurope',
    IL: 'israelcentral',
    IN: 'centralindia jioindiacentral jioindiawest southindia westindia',
    IT: 'italynorth',
    JP: 'japaneast japanwest',
    KR: 'koreacentral koreasouth',
    MX: 'mexicocentral',
    MY: 'malaysiawest',
    NL: 'westeurope',
    NO: 'norwayeast norwaywest',
    NZ: 'newzealandnorth',
    PL: 'polandcentral',
    QA: 'qatarcentral',
    SE: 'swedencentral',
    SG: 'southeastasia',
    US: 'centralus eastus eastus2 northcentralus southcentralus usgovarizona usgovtexas usgovvirginia westcentralus westus westus2 westus3',
    ZA: 'southafricanorth southafricawest',
  },
  // OVH
  4: {
    AU: 'SYD SYD1',
    CA: 'BHS BHS5 CA-EAST-TOR TOR',
    DE: 'DE DE1',
    FR: 'EU-WEST-PAR GRA GRA11 GRA7 GRA9 PAR RBX RBX-A RBX-ARCHIVE SBG SBG5 SBG7',
    GB: 'UK UK1',
    IN: 'AP-SOUTH-MUM-1 YNM',
    IT: 'EU-SOUTH-MIL MIL',
    PL: 'WAW WAW1',
    SG: 'SGP SGP1',
    US: 'HIL US-EAST-VA-1 US-WEST-OR-1 VIN',
  },
  // Hetzner
  5: {
    DE: 'fsn1 nbg1',
    FI: 'hel1',
    SG: 'sin',
    US: 'ash hil',
  },
  // Linode
  6: {
    AU: 'ap-southeast au-mel',
    BR: 'br-gru',
    CA: 'ca-central',
    DE: 'de-fra-2 eu-central',
    ES: 'es-mad',
    FR: 'fr-par fr-par-2',
    GB: 'eu-west gb-lon',
    ID: 'id-cgk',
    IN: 'ap-west in-bom-2 in-maa',
    IT: 'it-mil',
    JP: 'ap-northeast jp-osa jp-tyo-3',
    NL: 'nl-ams',
    NO: 'no-osl-1',
    SE: 'se-sto',
    SG: 'ap-south sg-sin-2',
    US: 'us-central us-east us-iad us-iad-2 us-lax us-mia us-ord us-sea us-southeast us-west',
  },
  // Vultr
  7: {
    AU: 'mel syd',
    BR: 'sao',
    CA: 'yto',
    CL: 'scl',
    DE: 'fra',
    ES: 'mad',
    FR: 'cdg',
    GB: 'lhr man',
    IL: 'tlv',
    IN: 'blr bom del',
    JP: 'itm nrt',
    KR: 'icn',
    MX: 'mex',
    NL: 'ams',
    PL: 'waw',
    SE: 'sto',
    SG: 'sgp',
    US: 'atl dfw ewr hnl lax mia ord sea sjc',
    ZA: 'jnb',
  },
  // DigitalOcean
  9: {
    AU: 'syd1',
    CA: 'tor1',
    DE: 'fra1',
    GB: 'lon1',
    IN: 'blr1',
    NL: 'ams2 ams3',
    SG: 'sgp1',
    US: 'atl1 nyc1 nyc2 nyc3 ric1 sfo1 sfo2 sfo3',
  },
  // Oracle
  11: {
    AE: 'me-abudhabi-1 me-dubai-1',
    AU: 'ap-melbourne-1 ap-sydney-1',
    BR: 'sa-saopaulo-1 sa-vinhedo-1',
    CA: 'ca-montreal-1 ca-toronto-1',
    CH: 'eu-zurich-1',
    CL: 'sa-santiago-1 sa-valparaiso-1',
    CO: 'sa-bogota-1',
    DE: 'eu-frankfurt-1',
    ES: 'eu-madrid-1 eu-madrid-3',
    FR: 'eu-marseille-1 eu-paris-1',
    GB: 'uk-cardiff-1 uk-london-1',
    ID: 'ap-batam-1',
    IL: 'il-jerusalem-1',
    IN: 'ap-hyderabad-1 ap-mumbai-1',
    IT: 'eu-milan-1 eu-turin-1',
    JP: 'ap-osaka-1 ap-tokyo-1',
    KR: 'ap-chuncheon-1 ap-seoul-1',
    MA: 'af-casablanca-1',
    MX: 'mx-monterrey-1 mx-queretaro-1',
    NL: 'eu-amsterdam-1',
    RS: 'eu-jovanovac-1',
    SA: 'me-jeddah-1 me-riyadh-1',
    SE: 'eu-stockholm-1',
    SG: 'ap-singapore-1 ap-singapore-2',
    US: 'us-ashburn-1 us-chicago-1 us-phoenix-1 us-sanjose-1',
    ZA: 'af-johannesburg-1',
  },
  // STACKIT
  14: {
    AT: 'eu02 eu02-m',
    DE: 'eu01 eu01-m',
  },
};

/** Scaleway, UpCloud and Exoscale begin the code of a zone with its country. */
const WITH_PREFIX: ReadonlySet<number> = new Set([8, 10, 12]);

const REGIONS = new Map(
  Object.entries(COUNTRIES).flatMap(([provider, countries]) =>
    Object.entries(countries).flatMap(([country, codes]) =>
      codes.split(' ').map((code) => [`${provider} ${code}`, country] as const),
    ),
  ),
);

/** Returns the country of a provider's region; undefined if it is unknown. */
export function countryOfRegion(providerId: number, code: string): string | undefined {
  if (WITH_PREFIX.has(providerId)) {
    const prefix = /^([a-z]{2})-/.exec(code)?.[1]?.toUpperCase();
    return prefix === 'UK' ? 'GB' : prefix;
  }
  // A further region in a place has the next number or letter: GRA12, RBX-B.
  const place = code.replace(/(?:\d{1,3}|-[A-Z])$/, '');
  return REGIONS.get(`${providerId} ${code}`) ?? REGIONS.get(`${providerId} ${place}`);
}

export const CONTINENTS = ['africa', 'asia', 'europe', 'north_america', 'oceania', 'south_america'] as const;
export type Continent = (typeof CONTINENTS)[number];

/** The countries with regions of providers, and their neighbours. Source: the M49 regions of the United Nations. */
export const COUNTRIES_OF: Readonly<Record<Continent, readonly string[]>> = {
  africa: 'DZ EG KE MA NG TN ZA'.split(' '),
  asia: 'AE BD BH CN GE HK ID IL IN JO JP KR KW KZ LK MO MY OM PH PK QA SA SG TH TR TW UZ VN'.split(' '),
  europe:
    'AL AT BA BE BG BY CH CZ DE DK EE ES FI FR GB GR HR HU IE IS IT LI LT LU LV MD ME MK MT NL NO PL PT RO RS RU SE SI SK UA'.split(
      ' ',
    ),
  north_america: 'CA CR CU DO GT JM MX PA PR US'.split(' '),
  oceania: 'AU NZ'.split(' '),
  south_america: 'AR BO BR CL CO EC PE PY UY VE'.split(' '),
};

/** ISO 3166-1 alpha-2. Some APIs send lower case. */
export const COUNTRY = /^[A-Za-z]{2}$/;

const continents = new Map(
  CONTINENTS.flatMap((continent) => COUNTRIES_OF[continent].map((country) => [country, continent] as const)),
);

export const continentOf = (country: string | undefined): Continent | undefined =>
  country === undefined ? undefined : continents.get(country);
