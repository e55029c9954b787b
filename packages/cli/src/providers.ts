/** The built-in clouds, with the simulators for the embedded cluster. */
import type { ProviderModule } from '@tenon/provider'
import { cleverCloud as cleverCloudModule } from '@tenon/provider-clever-cloud/module'
import { clusterApi as clusterApiModule } from '@tenon/provider-cluster-api/module'
import { exoscale as exoscaleModule } from '@tenon/provider-exoscale/module'
import { kwok } from '@tenon/provider-kwok/module'

export const exoscale: ProviderModule = {
  ...exoscaleModule,
  simulator: async () => (await import('@tenon/simulator-exoscale')).simulator,
}

export const cleverCloud: ProviderModule = {
  ...cleverCloudModule,
  simulator: async () => (await import('@tenon/simulator-clever-cloud')).simulator,
}

export const clusterApi: ProviderModule = {
  ...clusterApiModule,
  simulator: async () => (await import('@tenon/simulator-cluster-api')).simulator,
}

export const builtInProviders: readonly ProviderModule[] = [exoscale, cleverCloud, clusterApi, kwok]
