/** The clouds that Tenon knows: one line each. */
import type { ProviderModule } from '@tenon/provider'
import { cleverCloud } from '@tenon/provider-clever-cloud/module'
import { clusterApi } from '@tenon/provider-cluster-api/module'
import { exoscale } from '@tenon/provider-exoscale/module'
import { kwok } from '@tenon/provider-kwok/module'

export const builtInProviders: readonly ProviderModule[] = [exoscale, cleverCloud, clusterApi, kwok]
