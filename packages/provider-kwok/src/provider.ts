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
import { isKubeError, type KubeClient, type KubeErrorKind } from '@tenon/kube'
import {
  type CloudProvider,
  ProviderError,
  type ProviderErrorKind,
  type ProviderInstance,
  type RepairPolicy,
} from '@tenon/provider'
import type { Clock, Logger, Random } from '@tenon/runtime'
import { defaultCatalogue, kwokLabels } from './catalogue.ts'
import {
  type Choice,
  cheapestChoice,
  choiceOf,
  claimNameOf,
  isSoldOut,
  nodeName,
  providerIdPrefix,
  simulatedNode,
} from './launch.ts'
import { kwokNodeClassKind } from './nodeclass.ts'
import { SharedRead } from './shared-read.ts'

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
  /** Calls machines off whose Nodes have not appeared yet; by the Node's name. */
  readonly #coming = new Map<string, AbortController>()
  /** Launches come by the dozen. */
  readonly #machines = new SharedRead(() => this.#nodes())
  #sequence = 0

  constructor(deps: KwokDependencies) {
    this.#deps = deps
    this.#types = deps.instanceTypes ?? defaultCatalogue()
  }

  async create(
    claim: NodeClaim,
    signal?: AbortSignal,
    instanceTypes: readonly InstanceType[] = this.#types,
  ): Promise<ProviderInstance> {
    return await speak(() => this.#launch(claim, signal, instanceTypes), signal)
  }

  async #launch(
    claim: NodeClaim,
    signal: AbortSignal | undefined,
    instanceTypes: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    const { client, random } = this.#deps
    const existing = (await this.#machines.ask()).find((node) => claimNameOf(node) === claim.metadata.name)
    if (existing !== undefined) return this.#asLaunched(existing, claim)
    const choice = this.#choice(claim, instanceTypes)
    if (choice === undefined) {
      if (isSoldOut(claim, instanceTypes)) {
        throw new ProviderError(
          'insufficientCapacity',
          `NodeClaim ${claim.metadata.name}: no offering that it asks for is available now`,
        )
      }
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
    const node = simulatedNode(claim, choice, nodeName(claim, this.#sequence++, random))
    const delayMs = parseDuration(nodeClass.spec?.nodeRegistrationDelay ?? '0s') ?? 0
    if (delayMs === 0) return instanceOf(await client.create(kinds.node, node, options))
    void this.#createLater(node as Node, delayMs)
    return instanceOf(node as Node)
  }

  /** There is no machine beside the Node: one that never registered goes with this call. */
  async delete(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    await speak(() => this.#delete(claim.status?.providerID ?? '', signal), signal)
  }

  async #delete(providerID: string, signal: AbortSignal | undefined): Promise<void> {
    const { client } = this.#deps
    const name = nodeNameIn(providerID)
    this.#coming.get(name)?.abort()
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
    const name = nodeNameIn(providerID)
    const options = signal === undefined ? {} : { signal }
    const node =
      name === ''
        ? undefined
        : await speak(() => this.#deps.client.get(kinds.node, { name }, options), signal)
    if (node === undefined || node.metadata.deletionTimestamp !== undefined) {
      throw new ProviderError('nodeClaimNotFound', `no instance ${providerID}`)
    }
    return instanceOf(node)
  }

  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    return (await speak(() => this.#nodes(signal), signal)).map(instanceOf)
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

  /** What others say of a type decides which is taken; the machine is what this provider makes of it. */
  #choice(claim: NodeClaim, instanceTypes: readonly InstanceType[]): Choice | undefined {
    const choice = cheapestChoice(claim, instanceTypes)
    const type = this.#types.find(({ name }) => name === choice?.type.name)
    return choice === undefined || type === undefined ? undefined : { type, offering: choice.offering }
  }

  /** What the launch answered, or would have: by now others may have labelled the Node as well. */
  #asLaunched(node: Node, claim: NodeClaim): ProviderInstance {
    const choice = choiceOf(node, this.#types)
    if (choice === undefined) return instanceOf(node)
    const { metadata } = node
    const made = simulatedNode(claim, choice, metadata.name)
    return instanceOf({ ...made, metadata: { ...metadata, ...made.metadata } })
  }

  async #nodes(signal?: AbortSignal): Promise<readonly Node[]> {
    const nodes = await this.#deps.client.list(kinds.node, signal === undefined ? {} : { signal })
    return nodes.filter((node) => node.spec?.providerID?.startsWith(providerIdPrefix) === true)
  }

  /** The node appears after its registration delay; one that never does is the registration timeout's to find. */
  async #createLater(node: Node, delayMs: number): Promise<void> {
    const { client, clock, logger } = this.#deps
    const { name } = node.metadata
    const calledOff = new AbortController()
    const signal = AbortSignal.any([this.#stopped.signal, calledOff.signal])
    this.#coming.set(name, calledOff)
    try {
      await clock.sleep(delayMs, signal)
      for (let attempt = 1; attempt <= createAttempts; attempt++) {
        try {
          await client.create(kinds.node, node)
          // Whoever called it off meanwhile found no Node to delete.
          if (calledOff.signal.aborted) await client.delete(kinds.node, { name })
          return
        } catch (error) {
          if (isKubeError(error, 'alreadyExists')) return
          logger.error('creating the simulated node failed', {
            Node: { name },
            attempt,
            error,
          })
          await clock.sleep(10 * 5 ** attempt, signal)
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      this.#coming.delete(name)
    }
  }
}

/** The name of the Node in a provider ID; empty when the ID is another provider's. */
function nodeNameIn(providerID: string): string {
  return providerID.startsWith(providerIdPrefix) ? providerID.slice(providerIdPrefix.length) : ''
}

/** Lets nothing but the contract's errors, and the caller's own abort, out. */
async function speak<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await work()
  } catch (error) {
    signal?.throwIfAborted()
    if (!isKubeError(error)) throw error
    const { retryAfterMs } = error
    const details = { cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }) }
    const kind = contractKinds[error.kind] ?? 'other'
    throw new ProviderError(kind, `Kubernetes API: ${error.message}`, details)
  }
}

const contractKinds: Partial<Readonly<Record<KubeErrorKind, ProviderErrorKind>>> = {
  tooManyRequests: 'throttled',
  unauthorized: 'unauthorized',
  forbidden: 'unauthorized',
}

function instanceOf(node: Node): ProviderInstance {
  const claimName = claimNameOf(node)
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
