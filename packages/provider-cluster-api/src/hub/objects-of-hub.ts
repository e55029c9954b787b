/**
 * Reads of the hub without a cache: bindings, replicas and deletions are decided by these (cluster-api.md 8).
 */
import { ProviderError } from '@tenon/provider'
import type { HubKey } from './keys.ts'
import type { Cluster, MachineDeployment, Machine, MachineSet } from '../objects.ts'
import type { Hub, OpenHub } from './hub.ts'

/**
 * The hub, once it is open.
 * @throws ProviderError that says what it waits for.
 */
export function opened(hub: Pick<Hub, 'state'>): OpenHub {
  const { state } = hub
  if (state.kind === 'open') return state.hub
  throw new ProviderError(
    'unevaluatedNodePool',
    `the management cluster has not been read yet: ${state.because}`,
  )
}

/** The cached Cluster of a MachineDeployment. */
export function clusterOf(
  hub: Pick<Hub, 'state'>,
  { metadata, spec }: MachineDeployment,
): Cluster | undefined {
  const { namespace = '' } = metadata
  return opened(hub).caches.clusters.get({ namespace, name: spec?.clusterName ?? '' })
}

/** Reads without a cache. */
export class HubReads {
  readonly #hub: Hub

  constructor(hub: Hub) {
    this.#hub = hub
  }

  async deployment(key: HubKey, signal?: AbortSignal): Promise<MachineDeployment | undefined> {
    return await this.#hub.kube.get(opened(this.#hub).kinds.machineDeployment, key, optional(signal))
  }

  async machine(key: HubKey, signal?: AbortSignal): Promise<Machine | undefined> {
    return await this.#hub.kube.get(opened(this.#hub).kinds.machine, key, optional(signal))
  }

  /** All Machines of a MachineDeployment, including those being deleted. */
  async machinesOf({ namespace, name }: HubKey, signal?: AbortSignal): Promise<readonly Machine[]> {
    const { kube, names } = this.#hub
    return await kube.list(opened(this.#hub).kinds.machine, {
      namespace,
      labelSelector: { matchLabels: { [names.deploymentName]: name } },
      ...optional(signal),
    })
  }

  async setsOf({ namespace, name }: HubKey, signal?: AbortSignal): Promise<readonly MachineSet[]> {
    const { kube, names } = this.#hub
    return await kube.list(opened(this.#hub).kinds.machineSet, {
      namespace,
      labelSelector: { matchLabels: { [names.deploymentName]: name } },
      ...optional(signal),
    })
  }

  /** All Machines of the workload cluster; with `membersOnly` only those of NodeClaims. */
  async machines(membersOnly: boolean, signal?: AbortSignal): Promise<readonly Machine[]> {
    const { kube, names, scope } = this.#hub
    const member = { key: names.member, operator: 'Exists' } as const
    const machines = await kube.list(opened(this.#hub).kinds.machine, {
      ...(scope.namespace !== undefined && { namespace: scope.namespace }),
      ...(membersOnly && { labelSelector: { matchExpressions: [member] } }),
      ...optional(signal),
    })
    return machines.filter((machine) => this.isInScope(machine))
  }

  /** Whether an object of the hub belongs to the workload cluster. */
  isInScope({ metadata, spec }: Machine | MachineDeployment): boolean {
    const { namespace, clusterName } = this.#hub.scope
    return (
      (namespace === undefined || metadata.namespace === namespace) &&
      (clusterName === undefined || spec?.clusterName === clusterName)
    )
  }
}

function optional(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal }
}
