ALTER TABLE "audit_log" DROP CONSTRAINT "audit_log_says_how";--> statement-breakpoint
ALTER TABLE "operators" ALTER COLUMN "password_hash" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "operators" ADD COLUMN "oidc_issuer" text;--> statement-breakpoint
ALTER TABLE "operators" ADD COLUMN "oidc_subject" text;--> statement-breakpoint
CREATE UNIQUE INDEX "one_operator_per_oidc_subject" ON "operators" USING btree ("oidc_issuer","oidc_subject");--> statement-breakpoint
ALTER TABLE "audit_log" ADD CONSTRAINT "audit_log_says_how" CHECK ("audit_log"."how" in ('cli', 'console', 'token', 'oidc'));--> statement-breakpoint
ALTER TABLE "operators" ADD CONSTRAINT "operators_sign_in_by_one_way" CHECK ("operators"."password_hash" is null or "operators"."oidc_subject" is null);