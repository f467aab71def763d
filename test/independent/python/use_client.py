"""Calls every operation with the generated client, checks the types of the results, and prints the results as JSON.

Arguments: the address of the API, a token, a cursor of the feed.
"""

import datetime
import json
import sys

from generated import AuthenticatedClient, Client, models, types
from generated.api.changes import list_changes
from generated.api.clusters import (
    get_cluster,
    get_cluster_cost,
    get_cluster_details,
    list_alternatives,
    list_cluster_costs,
    list_clusters,
    list_costs,
    list_lifecycle,
)
from generated.api.exports import download_export, export_karpenter, export_open_cost, list_exports
from generated.api.health import get_health, get_open_api, get_readiness
from generated.api.machines import (
    find_first_available,
    get_database,
    get_machine,
    list_databases,
    list_machine_availability,
    list_machine_prices,
    list_machine_terms,
    list_machines,
    list_providers,
    list_region_prices,
    recommend_machines,
    search_machines,
)

url, token, cursor = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
anyone = Client(base_url=url, raise_on_unexpected_status=True)
results = {}


def each(found, kind):
    """Returns the list as JSON. Every element has the type, and there is one."""
    assert isinstance(found, list) and found, found
    assert all(isinstance(one, kind) for one in found), found
    return [one.to_dict() for one in found]


def one(found, kind):
    assert isinstance(found, kind), found
    return found.to_dict()


providers = list_providers.sync(client=client)
results["listProviders"] = each(providers, models.Provider)
provider = providers[0]
machines = list_machines.sync(client=client, provider=provider.id, region=provider.regions[1].id)
results["listMachines"] = each(machines, models.Machine)
machine = machines[0]
assert type(machine.ram) is int and type(machine.price) is float
assert isinstance(machine.ram_unit, models.MachineRamUnit)
results["getMachine"] = one(get_machine.sync(client=client, id=machine.id), models.Machine)
prices = list_machine_prices.sync(client=client, id=machine.id)
assert isinstance(prices[0].from_, datetime.datetime) and prices[0].to is None
results["listMachinePrices"] = each(prices, models.Price)
clusters = list_clusters.sync(client=client)
results["listClusters"] = each(clusters, models.Cluster)
assert isinstance(clusters[0].disks[0].type_.price, float)
results["getCluster"] = one(get_cluster.sync(client=client, slug=clusters[0].slug), models.Cluster)
stock = list_machine_availability.sync(client=client, id=machine.id)
results["listMachineAvailability"] = one(stock, models.ListMachineAvailabilityResponse200)
assert isinstance(stock.available_share, (int, float)) and stock.history[0].to is None
first = find_first_available.sync(client=client, ids=[999999999, machine.id])
results["findFirstAvailable"] = one(first, models.FindFirstAvailableResponse200)
assert first.machine.id == machine.id
terms = list_machine_terms.sync(client=client, id=machine.id)
results["listMachineTerms"] = one(terms, models.ListMachineTermsResponse200)
assert isinstance(terms.terms[0].recurring_price, float)
prices_of_region = list_region_prices.sync(client=client, id=provider.regions[1].id)
results["listRegionPrices"] = one(prices_of_region, models.ListRegionPricesResponse200)
plans = list_databases.sync(client=client, sort=models.ListDatabasesSort("-price"), limit=2)
results["listDatabases"] = one(plans, models.ListDatabasesResponse200)
plan = get_database.sync(client=client, id=plans.databases[0].id, history=models.GetDatabaseHistory.TRUE)
results["getDatabase"] = one(plan, models.GetDatabaseResponse200)
assert isinstance(plan.price, float) and plan.history[0].to is None
slug = clusters[0].slug
details = get_cluster_details.sync(client=client, slug=slug)
results["getClusterDetails"] = one(details, models.GetClusterDetailsResponse200)
assert isinstance(details.version, str) and isinstance(details.state, models.GetClusterDetailsResponse200State)
lifecycle = list_lifecycle.sync(client=client, within=365, limit=2)
results["listLifecycle"] = one(lifecycle, models.ListLifecycleResponse200)
assert len(lifecycle.clusters) == 2 and isinstance(lifecycle.today, datetime.date)
cost = get_cluster_cost.sync(client=client, slug=slug, term=models.GetClusterCostTerm.ON_DEMAND)
results["getClusterCost"] = one(cost, models.GetClusterCostResponse200)
assert isinstance(cost.per_month, float)
history = list_cluster_costs.sync(client=client, slug=slug)
results["listClusterCosts"] = one(history, models.ListClusterCostsResponse200)
alternatives = list_alternatives.sync(client=client, slug=slug, limit=2)
results["listAlternatives"] = one(alternatives, models.ListAlternativesResponse200)
costs = list_costs.sync(client=client, limit=5)
results["listCosts"] = one(costs, models.ListCostsResponse200)

page = search_machines.sync(
    client=client,
    min_cpu=4,
    max_price=0.01,
    min_ram=7.5,
    ram_unit=models.SearchMachinesRamUnit.BINARY,
    provider=[each_provider.id for each_provider in providers],
    sort=models.SearchMachinesSort("-cpu"),
    limit=3,
)
results["searchMachines"] = one(page, models.SearchMachinesResponse200)
assert len(page.machines) == 3 and isinstance(page.next_, str)
advice = recommend_machines.sync(client=client, cpu=2, ram=4.0, hours=100.5)
results["recommendMachines"] = one(advice, models.RecommendMachinesResponse200)
assert isinstance(advice.recommendations[0].total, float)

changes = list_changes.sync(client=client, after=cursor, limit=1000)
results["listChanges"] = one(changes, models.Changes)
assert "cluster.changed" in [change.type_ for change in changes.changes], changes

exports = list_exports.sync(client=client)
results["listExports"] = each(exports, models.Export)
assert isinstance(exports[0].created_at, datetime.datetime)
file = download_export.sync(client=client, file=models.DownloadExportFile.MACHINES_PARQUET)
assert isinstance(file, types.File)
content = file.payload.read()
assert content[:4] == b"PAR1" == content[-4:], content[:20]
results["downloadExport"] = len(content)

karpenter = export_karpenter.sync(
    client=client, provider=models.ExportKarpenterProvider.AWS, region="eu-central-9"
)
assert isinstance(karpenter, models.Problem)
results["exportKarpenter"] = karpenter.detail
open_cost = export_open_cost.sync(client=client, provider=5)
assert isinstance(open_cost, types.File)
results["exportOpenCost"] = open_cost.payload.read().decode()

results["getHealth"] = one(get_health.sync(client=anyone), models.GetHealthResponse200)
results["getReadiness"] = one(get_readiness.sync(client=anyone), models.GetReadinessResponse200)
results["getOpenApi"] = one(get_open_api.sync(client=anyone), models.GetOpenApiResponse200)

missing = get_cluster.sync_detailed(client=client, slug="none")
assert missing.status_code == 404 and isinstance(missing.parsed, models.Problem)
stranger = AuthenticatedClient(base_url=url, token="fb_bad")
refused = list_clusters.sync_detailed(client=stranger)
assert refused.status_code == 401 and isinstance(refused.parsed, models.Problem)
results["problems"] = [missing.parsed.detail, refused.parsed.detail]

print(json.dumps(results))
