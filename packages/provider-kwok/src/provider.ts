/** Machines that are only Node objects; the kwok controller plays their kubelets (operations.md 12). */
import {
  conditionOf,
  type InstanceType,
  kinds,
  type Node,
  type NodeClaim,
  type NodeClass,
  parseDuration,
  type ResourceType,
} from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type CloudProvider, ProviderError, type ProviderInstance, type RepairPolicy } from '@tenon/provider'
import type { Clock, Logger, Random } from '@tenon/runtime'
import { defaultCatalogue, kwokLabels } from './catalogue.ts'
import { cheapestChoice, claimAnnotation, nodeName, providerIdPrefix, simulatedNode } from './launch.ts'
import { kwokNodeClassKind } from './nodeclass.ts'

const repairTolerationMs = 10 * 60_000
const createAttempts = 4

/** What the provider runs on; without `instanceTypes` it offers its own catalogue. */
export interface KwokDependencies {
  readonly client: KubeClient
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly instanceTypes?: readonly InstanceType[]
}

/** The provider `kwok`. */
export class KwokProvider implements CloudProvider {
  readonly name = 'kwok'
  readonly nodeClasses: readonly ResourceType<NodeClass>[] = [kwokNodeClassKind]
  readonly wellKnownLabels: readonly string[] = Object.values(kwokLabels)
  readonly repairPolicies: readonly RepairPolicy[] = (['False', 'Unknown'] as const).map(
    (conditionStatus) => ({
      conditionType: 'Ready',
      conditionStatus,
      tolerationMs: repairTolerationMs,
    }),
  )
  readonly #deps: KwokDependencies
  readonly #types: readonly InstanceType[]
  readonly #stopped = new AbortController()
  #sequence = 0

  constructor(deps: KwokDependencies) {
    this.#deps = deps
    this.#types = deps.instanceTypes ?? defaultCatalogue()
  }

  async create(claim: NodeClaim, signal?: AbortSignal): Promise<ProviderInstance> {
    const { client, random } = this.#deps
    const choice = cheapestChoice(claim, this.#types)
    if (choice === undefined) {
      throw new ProviderError(
        'other',
        `NodeClaim ${claim.metadata.name}: requirements name no instance type with a matching offering; list some under node.kubernetes.io/instance-type`,
      )
    }
    const options = signal === undefined ? {} : { signal }
    const nodeClass = await client.get(kwokNodeClassKind, { name: claim.spec.nodeClassRef.name }, options)
    if (nodeClass === undefined) {
      throw new ProviderError(
        'insufficientCapacity',
        `KWOKNodeClass ${claim.spec.nodeClassRef.name} does not exist`,
      )
    }
    const ready = conditionOf(nodeClass, 'Ready')
    if (ready?.status === 'False') throw new ProviderError('nodeClassNotReady', ready.message)
    const existing = (await this.#nodes(signal)).find((node) => isNodeOf(node, claim))
    if (existing !== undefined) return instanceOf(existing)
    const node = simulatedNode(claim, choice, nodeName(claim, this.#sequence++, random))
    const delayMs = parseDuration(nodeClass.spec?.nodeRegistrationDelay ?? '0s') ?? 0
    if (delayMs === 0) return instanceOf(await client.create(kinds.node, node, options))
    void this.#createLater(node as Node, delayMs)
    return instanceOf(node as Node)
  }

  /** There is no machine beside the Node: one that never registered goes with this call. */
  async delete(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    const { client } = this.#deps
    const providerID = claim.status?.providerID ?? ''
    const name = providerID.slice(providerIdPrefix.length)
    const options = signal === undefined ? {} : { signal }
    const node = name === '' ? undefined : await client.get(kinds.node, { name }, options)
    if (node !== undefined && node.metadata.deletionTimestamp === undefined) {
      await client.delete(kinds.node, { name }, options).catch((error: unknown) => {
        if (!isKubeError(error, 'notFound')) throw error
      })
    }
    throw new ProviderError('nodeClaimNotFound', `instance ${providerID} has ended`)
  }

  async get(providerID: string, signal?: AbortSignal): Promise<ProviderInstance> {
    const name = providerID.startsWith(providerIdPrefix)
      ? providerID.slice(providerIdPrefix.length)
      : undefined
    const node =
      name === undefined || name === ''
        ? undefined
        : await this.#deps.client.get(kinds.node, { name }, signal === undefined ? {} : { signal })
    if (node === undefined || node.metadata.deletionTimestamp !== undefined) {
      throw new ProviderError('nodeClaimNotFound', `no instance ${providerID}`)
    }
    return instanceOf(node)
  }

  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    return (await this.#nodes(signal)).map(instanceOf)
  }

  getInstanceTypes(): Promise<readonly InstanceType[]> {
    return Promise.resolve(this.#types)
  }

  isDrifted(): Promise<string | undefined> {
    return Promise.resolve(undefined)
  }

  startControllers(signal: AbortSignal): void {
    signal.addEventListener('abort', () => {
      this.#stopped.abort(signal.reason)
    })
  }

  async #nodes(signal?: AbortSignal): Promise<readonly Node[]> {
    const nodes = await this.#deps.client.list(kinds.node, signal === undefined ? {} : { signal })
    return nodes.filter((node) => node.spec?.providerID?.startsWith(providerIdPrefix) === true)
  }

  /** The node appears after its registration delay; one that never does is the registration timeout's to find. */
  async #createLater(node: Node, delayMs: number): Promise<void> {
    const { client, clock, logger } = this.#deps
    try {
      await clock.sleep(delayMs, this.#stopped.signal)
      for (let attempt = 1; attempt <= createAttempts; attempt++) {
        try {
          await client.create(kinds.node, node)
          return
        } catch (error) {
          if (isKubeError(error, 'alreadyExists')) return
          logger.error('creating the simulated node failed', {
            Node: { name: node.metadata.name },
            attempt,
            error,
          })
          await clock.sleep(10 * 5 ** attempt, this.#stopped.signal)
        }
      }
    } catch (error) {
      if (!this.#stopped.signal.aborted) throw error
    }
  }
}

function isNodeOf(node: Node, claim: NodeClaim): boolean {
  return node.metadata.annotations?.[claimAnnotation] === claim.metadata.name
}

function instanceOf(node: Node): ProviderInstance {
  const claimName = node.metadata.annotations?.[claimAnnotation]
  return {
    providerID: node.spec?.providerID ?? '',
    labels: node.metadata.labels ?? {},
    annotations: node.metadata.annotations ?? {},
    capacity: node.status?.capacity ?? {},
    allocatable: node.status?.allocatable ?? {},
    deleting: node.metadata.deletionTimestamp !== undefined,
    ...(claimName !== undefined && { nodeClaimName: claimName }),
    ...(node.metadata.creationTimestamp !== undefined && {
      createdAtMs: Date.parse(node.metadata.creationTimestamp),
    }),
  }
}
