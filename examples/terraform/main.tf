# Reads the cheapest machine with enough CPUs and memory from Fleetbook, for the module that creates machines.

terraform {
  required_version = ">= 1.5"
  required_providers {
    http = {
      source  = "hashicorp/http"
      version = ">= 3.0"
    }
  }
}

variable "fleetbook_url" {
  type    = string
  default = "http://127.0.0.1:3000"
}

variable "fleetbook_token" {
  type      = string
  sensitive = true
}

variable "cpu" {
  type    = number
  default = 2
}

variable "ram_gb" {
  type    = number
  default = 4
}

data "http" "recommendations" {
  url = "${var.fleetbook_url}/v1/machines/recommend?cpu=${var.cpu}&ram=${var.ram_gb}&ram_unit=Decimal"
  request_headers = {
    Authorization = "Bearer ${var.fleetbook_token}"
    Accept        = "application/json"
  }
  lifecycle {
    postcondition {
      condition     = self.status_code == 200
      error_message = "Fleetbook answered ${self.status_code}: ${self.response_body}"
    }
  }
}

locals {
  cheapest = jsondecode(data.http.recommendations.response_body).recommendations[0]
}

output "machine" {
  value = {
    provider = local.cheapest.machine.provider.name
    region   = local.cheapest.machine.region.code
    type     = local.cheapest.machine.name
    month    = local.cheapest.total
  }
}
