/** Connects a new instance: its private networks, and its Node. */
import { formatResources, ownValue, parseResources, type ResourceList } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { ProviderInstance } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import { isApiError } from '../api/errors.ts'
import type { ExoscaleInstance } from '../api/types.ts'
import { reservedResources } from '../catalogue/instance-types.ts'
import { isOutcomeUnknown, launchError, launchReasons } from '../errors.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { exoscaleAnnotations, parseProviderId } from '../identifiers.ts'
import { kubeletSettings, nodeClassHash } from '../nodeclass/settings.ts'
import type { ExoscaleNodeClass } from '../nodeclass/types.ts'
import { ensureEarlyNode } from './early-node.ts'

export interface IntroductionDependencies {
  readonly api: Pick<ExoscaleClient, 'attachInstanceToPrivateNetwork' | 'getInstance' | 'waitForOperation'>
  readonly kube: Pick<KubeClient, 'create' | 'delete' | 'get' | 'patch'>
  readonly fleet: Pick<Fleet, 'describe' | 'requestDeletion'>
  readonly clock: Clock
  readonly logger: Logger
}

export class Introduction {
  readonly #deps: IntroductionDependencies

  constructor(deps: IntroductionDependencies) {
    this.#deps = deps
  }

  /** Deletes the instance if its networks are refused. */
  async attachNetworks(
    nodeClass: ExoscaleNodeClass,
    instance: ExoscaleInstance,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { api, fleet, logger } = this.#deps
    try {
      await attachPrivateNetworks(api, nodeClass.status?.privateNetworks ?? [], instance, signal)
    } catch (error) {
      // If the networks may have been attached, the next attempt continues with this instance.
      if (signal?.aborted !== true && !isOutcomeUnknown(error)) {
        await fleet.requestDeletion(instance.id).catch((cause: unknown) => {
          logger.warn('instance without its networks could not be deleted', {
            instance: instance.id,
            error: cause,
          })
        })
      }
      throw launchError(error, launchReasons.instance)
    }
  }

  /** Creates the Node of the instance and returns the instance's description. */
  async introduce(
    name: string,
    nodeClass: ExoscaleNodeClass,
    instance: ExoscaleInstance,
  ): Promise<ProviderInstance> {
    const { kube, clock, fleet } = this.#deps
    const owned = await fleet.describe(instance)
    const described = { ...owned, allocatable: allocatableOf(owned.capacity, nodeClass) }
    try {
      await ensureEarlyNode({ kube, clock, isAlive: (id) => this.#isAlive(id) }, name, instance, described)
    } catch (error) {
      throw launchError(error, launchReasons.node)
    }
    const { imageID } = described
    return {
      ...described,
      annotations: {
        [exoscaleAnnotations.nodeClassHash]: nodeClassHash(nodeClass.spec),
        ...(imageID !== undefined && { [exoscaleAnnotations.resolvedTemplate]: imageID }),
      },
    }
  }

  async #isAlive(providerID: string): Promise<boolean> {
    const parsed = parseProviderId(providerID)
    if (parsed.kind !== 'instance') return true
    try {
      await this.#deps.api.getInstance(parsed.instanceId)
      return true
    } catch (error) {
      if (isApiError(error, 'not-found')) return false
      throw error
    }
  }
}

/** What is left for pods; the kubelet will report the same. */
function allocatableOf(capacity: ResourceList, nodeClass: ExoscaleNodeClass): ResourceList {
  const { kubeReserved, systemReserved } = kubeletSettings(nodeClass.spec)
  const reserved = [reservedResources(kubeReserved), reservedResources(systemReserved)]
  const left = Object.entries(parseResources(capacity)).map(([name, amount]): [string, number] => [
    name,
    Math.max(
      0,
      reserved.reduce((rest, part) => rest - (ownValue(part, name) ?? 0), amount),
    ),
  ])
  return formatResources(Object.fromEntries(left))
}

/** Attaches the networks one by one; skips those that are attached already. */
async function attachPrivateNetworks(
  api: Pick<ExoscaleClient, 'attachInstanceToPrivateNetwork' | 'getInstance' | 'waitForOperation'>,
  networkIds: readonly string[],
  instance: ExoscaleInstance,
  signal?: AbortSignal,
): Promise<void> {
  const attached = new Set((instance['private-networks'] ?? []).map((network) => network.id))
  for (const networkId of networkIds) {
    if (attached.has(networkId)) continue
    try {
      const operation = await api.attachInstanceToPrivateNetwork(networkId, instance.id, signal)
      await api.waitForOperation(operation, { signal })
    } catch (error) {
      if (!(await isAttached(api, networkId, instance.id, error, signal))) throw error
    }
  }
}

/** If a first call took effect but its response was lost, a repeated one is refused. */
async function isAttached(
  api: Pick<ExoscaleClient, 'getInstance'>,
  networkId: string,
  instanceId: string,
  error: unknown,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (!isApiError(error, 'conflict', 'bad-request', 'unprocessable')) return false
  const { 'private-networks': networks = [] } = await api.getInstance(instanceId, signal)
  return networks.some((network) => network.id === networkId)
}
