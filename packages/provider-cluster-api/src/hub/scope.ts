/** The scope of the hub, from the environment (cluster-api.md 6, 14). */
import { ownValue } from '@tenon/api'
import type { ProviderEnvironment } from '@tenon/provider'
import { defaultGroup } from '../names.ts'
import type { HubScope } from './hub.ts'

/** The value of a variable; undefined if it is unset or empty. */
export function given(env: ProviderEnvironment, variable: string): string | undefined {
  const value = ownValue(env, variable)
  return value === '' ? undefined : value
}

export function scopeIn(env: ProviderEnvironment): HubScope {
  const namespace = given(env, 'CLUSTER_API_NAMESPACE')
  const clusterName = given(env, 'CLUSTER_API_CLUSTER_NAME')
  return { ...(namespace !== undefined && { namespace }), ...(clusterName !== undefined && { clusterName }) }
}

/** The API group of Cluster API. */
export function groupIn(env: ProviderEnvironment): string {
  return given(env, 'CAPI_GROUP') ?? defaultGroup
}
