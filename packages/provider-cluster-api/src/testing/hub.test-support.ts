/** A workload cluster and a hub in one map, with the catalogue on it. */
import { type LabelSelector, noPrices, type PriceList } from '@tenon/api'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { Catalogue } from '../catalogue/catalogue.ts'
import type { HubScope, HubState, OpenHub } from '../hub/hub.ts'
import { type ClusterAPINodeClass, clusterAPINodeClassKind } from '../node-class.ts'
import { kindsOf, type MachineDeployment } from '../objects.ts'
import { aDeployment, type DeploymentParts, names } from './deployments.test-support.ts'

/** Kinds of the hub. */
export const kinds = kindsOf('cluster.x-k8s.io', 'v1beta2')

/** The class `default`, and the MachineDeployments that a test puts there. */
export class CatalogueStage {
  readonly clock = new VirtualClock()
  readonly kube = new MemoryKube(this.clock)
  readonly openHub: OpenHub
  readonly hub: { state: HubState; readonly names: typeof names; readonly scope: HubScope }
  readonly catalogue: Catalogue

  constructor({
    scope = {},
    state,
    prices = noPrices,
  }: { readonly scope?: HubScope; readonly state?: HubState; readonly prices?: PriceList } = {}) {
    const { kube } = this
    const caches = {
      machineDeployments: kube.cache(kinds.machineDeployment),
      machineSets: kube.cache(kinds.machineSet),
      machines: kube.cache(kinds.machine),
      clusters: kube.cache(kinds.cluster),
    }
    this.openHub = { kinds, caches }
    this.hub = { names, scope, state: state ?? { kind: 'open', hub: this.openHub } }
    this.catalogue = new Catalogue({
      hub: this.hub,
      templates: { factsOf: () => Promise.resolve(undefined) },
      prices,
      logger: silentLogger,
      nodeClasses: kube.cache(clusterAPINodeClassKind),
    })
    this.putClass(undefined)
  }

  put(parts: DeploymentParts): MachineDeployment {
    return this.kube.put(kinds.machineDeployment, aDeployment(parts))
  }

  putClass(scalableResourceSelector: LabelSelector | undefined, generation = 1): ClusterAPINodeClass {
    const { status } = this.kube.all(clusterAPINodeClassKind)[0] ?? {}
    return this.kube.put(clusterAPINodeClassKind, {
      apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
      kind: 'ClusterAPINodeClass',
      metadata: { name: 'default', generation },
      spec: scalableResourceSelector === undefined ? {} : { scalableResourceSelector },
      ...(status !== undefined && { status }),
    })
  }
}
