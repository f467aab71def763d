CREATE TABLE "exchange_rates" (
	"currency" text PRIMARY KEY NOT NULL,
	"per_euro" numeric NOT NULL,
	"as_of" date NOT NULL
);
