import type { NodeGroupDependencies, NodeGroupModule, NodeGroups } from '@tenon/provider'
import { defaultArchitecture } from '../catalogue/node-labels.ts'
import { InfrastructureTemplates } from '../catalogue/templates.ts'
import { groupIn } from '../hub/scope.ts'
import { withServerNames } from '../hub/server-names.ts'
import { readVersion } from '../hub/settings.ts'
import { namesOf } from '../names.ts'
import { groupChartValues } from './chart-values.ts'
import { namespacesOf, parseDiscoverySpec } from './discovery.ts'
import { GroupHub } from './group-hub.ts'
import { ClusterApiNodeGroups } from './node-groups.ts'
import { groupPreflight } from './preflight.ts'

/** Node groups of Cluster API for `tenon cluster-autoscaler`. */
export const nodeGroupModule: NodeGroupModule = {
  hasManagementCluster: true,
  open(dependencies: NodeGroupDependencies): NodeGroups {
    const {
      env,
      clusters,
      discoverySpecs,
      nodeGroupSpecs,
      anyMachinePoolVictim = false,
      runtime,
    } = dependencies
    const { clock, logger, random } = runtime
    const { workload, management } = clusters
    const specs = discoverySpecs.map(parseDiscoverySpec)
    const namespaces = namespacesOf(specs)
    const version = readVersion(env['CAPI_VERSION'] === '' ? undefined : env['CAPI_VERSION'])
    if (nodeGroupSpecs.length > 0)
      logger.warn(
        '--nodes is not used: annotations of the resources in the management cluster set the bounds',
      )
    const hub = new GroupHub({
      client:
        management.server === workload.server
          ? management.client
          : withServerNames(management.client, management.server, { record: () => undefined }),
      server: management.server,
      names: namesOf(groupIn(env)),
      ...(version !== undefined && { version }),
      ...(namespaces !== undefined && { namespaces }),
      clock,
      random: random.fork('hub'),
      logger,
    })
    const templates = new InfrastructureTemplates({
      hub: { kube: hub.client },
      discovery: hub.client,
      clock,
      logger,
    })
    const architecture = defaultArchitecture(env['CAPI_SCALE_ZERO_DEFAULT_ARCH'])
    return new ClusterApiNodeGroups(
      hub,
      templates,
      { specs, architecture, anyPoolVictim: anyMachinePoolVictim },
      { clock, logger },
    )
  },
  preflight: groupPreflight,
  chartValues: groupChartValues,
}
