import type { NodeGroupDependencies, NodeGroupModule, NodeGroups, ProviderEnvironment } from '@tenon/provider'
import type { Transport } from '@tenon/runtime'
import { ExoscaleClient } from '../api/client.ts'
import { HttpsTransport } from '../api/https-transport.ts'
import { NodeGroupApi } from './call-api.ts'
import { groupChartValues } from './chart-values.ts'
import { ExoscaleNodeGroups } from './node-groups.ts'
import { groupPreflight } from './preflight.ts'
import { readNodeGroupSettings } from '../api/node-group-settings.ts'

/** A loop waits for these calls, so they time out sooner than those of launches. */
const patience = { maxAttempts: 3, attemptTimeoutMs: 20_000 } as const

/** @param connect opens a transport to an endpoint: scheme, host and port; paths are part of requests. */
export function nodeGroupModuleOver(
  connect: (endpoint: string, env: ProviderEnvironment) => Transport,
): NodeGroupModule {
  return {
    open(dependencies: NodeGroupDependencies): NodeGroups {
      const { env, nodeGroupSpecs, allowsEmptyGroups, cloud, runtime } = dependencies
      const { clock, logger } = runtime
      const { zone, apiKey, apiSecret, endpoint } = readNodeGroupSettings(env)
      const client = new ExoscaleClient({
        transport: cloud.fenced(connect(endpoint, env)),
        basePath: new URL(endpoint).pathname.replace(/\/+$/, ''),
        credentials: { key: apiKey, secret: apiSecret },
        clock,
        userAgent: cloud.userAgent,
        ...patience,
      })
      return new ExoscaleNodeGroups({
        api: new NodeGroupApi(client),
        zone,
        nodeGroupSpecs,
        allowsEmptyGroups,
        clock,
        logger,
      })
    },
    preflight: (dependencies) => groupPreflight(dependencies, connect),
    chartValues: (dependencies, nodes, signal) => groupChartValues(dependencies, nodes, connect, signal),
  }
}

/** Node groups of Exoscale for `tenon cluster-autoscaler`. */
export const nodeGroupModule: NodeGroupModule = nodeGroupModuleOver(
  (endpoint, env) => new HttpsTransport(endpoint, env),
)
