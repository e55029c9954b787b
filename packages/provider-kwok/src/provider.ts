/**
 * A provider whose instances are only Node objects; the kwok controller simulates their kubelets (operations.md 12).
 */
import {
  conditionOf,
  type InstanceType,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  parseDuration,
  type ResourceType,
} from '@tenon/api'
import { type Cache, isKubeError, type KubeClient, type ReadFields } from '@tenon/kube'
import {
  type CloudProvider,
  ProviderError,
  type ProviderInstance,
  type RepairPolicy,
  replaceUnready,
  withProviderErrors,
} from '@tenon/provider'
import { integerBetween, type Runtime, unit } from '@tenon/runtime'
import { defaultCatalogue } from './catalogue.ts'
import { DevicePublisher } from './devices/publisher.ts'
import { Failures } from './failures.ts'
import type { FailureSettings } from './failure-settings.ts'
import { choosableLabels } from './instance-type.ts'
import {
  cheapestChoice,
  type Choice,
  choiceOf,
  claimNameOf,
  isSoldOut,
  nodeName,
  partitionLabel,
  providerIdPrefix,
  simulatedNode,
  unknownTypes,
} from './launch.ts'
import { type KwokNodeClass, kwokNodeClassKind } from './nodeclass.ts'

/** Attempts to create a Node, and the pauses between them. */
const creation = { attempts: 4, pauseMs: 10, growth: 5, jitter: 0.1 }
/** On a Node and its claim: the image of the instance, if its node class names one. */
const imageAnnotation = 'karpenter.kwok.sh/image'

/**
 * The fields of a Node that describe its instance. There may be thousands of Nodes, which are listed every few minutes.
 */
const instanceFields: ReadFields = {
  members: {
    metadata: { members: { managedFields: false }, others: true },
    spec: true,
    status: { members: { capacity: true, allocatable: true }, others: false },
  },
  others: false,
}

/** What the provider needs; without `instanceTypes` it offers its own catalogue. */
export interface KwokDependencies {
  readonly client: Pick<KubeClient, 'create' | 'delete' | 'get' | 'list'>
  /** The cache of node classes; without it, there are no simulated failures. */
  readonly nodeClasses?: Pick<Cache<KwokNodeClass>, 'get'>
  readonly runtime: Runtime
  readonly instanceTypes?: readonly InstanceType[]
  /** Names of the kwok controllers; each Node gets a random one. Default: `a`. */
  readonly partitions?: readonly string[]
}

export class KwokProvider implements CloudProvider {
  readonly name = 'kwok'
  readonly nodeClasses: readonly ResourceType<NodeClass>[] = [kwokNodeClassKind]
  readonly wellKnownLabels: readonly string[]
  readonly restrictedDomains: readonly string[] = [kwokNodeClassKind.group]
  readonly repairPolicies: readonly RepairPolicy[] = replaceUnready
  readonly #deps: KwokDependencies
  readonly #types: readonly InstanceType[]
  readonly #failures: Failures
  readonly #partitions: readonly string[]
  readonly #stopped = new AbortController()
  /** By Node name: cancels instances whose Nodes do not exist yet. */
  readonly #coming = new Map<string, AbortController>()
  /** One list serves many concurrent launches. */
  readonly #instances = new SharedRead(() => this.#nodes())
  #sequence = 0

  constructor(deps: KwokDependencies) {
    this.#deps = deps
    this.#types = deps.instanceTypes ?? defaultCatalogue()
    this.#failures = new Failures(deps.runtime)
    this.#partitions = deps.partitions ?? ['a']
    this.wellKnownLabels = choosableLabels(this.#types)
  }

  async create(
    claim: NodeClaim,
    signal?: AbortSignal,
    instanceTypes?: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    return await withProviderErrors(() => this.#launch(claim, signal, instanceTypes), signal)
  }

  async #launch(
    claim: NodeClaim,
    signal: AbortSignal | undefined,
    listed: readonly InstanceType[] | undefined,
  ): Promise<ProviderInstance> {
    const { client, runtime } = this.#deps
    const { name: className } = claim.spec.nodeClassRef
    const existing = (await this.#instances.ask()).find((node) => claimNameOf(node) === claim.metadata.name)
    if (existing !== undefined) return this.#asLaunched(existing, claim)
    const instanceTypes = listed ?? this.#listed(className)
    this.#refuseUnknown(claim, instanceTypes)
    const options = signal === undefined ? {} : { signal }
    const nodeClass = await client.get(kwokNodeClassKind, { name: className }, options)
    if (nodeClass === undefined)
      throw new ProviderError('insufficientCapacity', `KWOKNodeClass ${className} does not exist`, {
        blames: { what: 'nodeClass' },
      })
    const ready = conditionOf(nodeClass, 'Ready')
    if (ready?.status === 'False') throw new ProviderError('nodeClassNotReady', ready.message)
    const failures = this.#failures.settingsOf(nodeClass)
    this.#failures.throttle(className, failures)
    const choice = this.#choice(claim, instanceTypes)
    if (choice === undefined) {
      throw new ProviderError(
        'insufficientCapacity',
        `NodeClaim ${claim.metadata.name}: no requested offering is available now`,
      )
    }
    this.#failures.refuse(choice, failures)
    const node = simulatedNode(claim, choice, {
      name: nodeName(claim, this.#sequence++, runtime.random),
      partition: this.#partitions[integerBetween(runtime.random, 0, this.#partitions.length - 1)] ?? 'a',
      annotations: failures.image === undefined ? {} : { [imageAnnotation]: failures.image },
      shares: failures.instanceShares,
    }) as Node
    await this.#appear(node, parseDuration(nodeClass.spec?.nodeRegistrationDelay ?? '0s') ?? 0)
    return instanceOf(node)
  }

  /** @throws ProviderError if no offering could meet the claim, available or not. */
  #refuseUnknown(claim: NodeClaim, instanceTypes: readonly InstanceType[]): void {
    const [unknown] = unknownTypes(claim, this.#types)
    if (unknown === undefined && isSoldOut(claim, instanceTypes)) return
    throw new ProviderError(
      'other',
      unknown === undefined
        ? `NodeClaim ${claim.metadata.name}: requirements name no instance type with a matching offering; list some under ${labels.instanceType}`
        : `NodeClaim ${claim.metadata.name}: there is no instance type ${unknown}; list known ones under ${labels.instanceType}`,
    )
  }

  /** The Node is the instance. A Node that is not created yet is cancelled. */
  async delete(claim: NodeClaim, signal?: AbortSignal): Promise<void> {
    await withProviderErrors(() => this.#delete(claim, signal), signal)
  }

  async #delete(claim: NodeClaim, signal: AbortSignal | undefined): Promise<void> {
    const { client } = this.#deps
    const providerID = claim.status?.providerID ?? ''
    const { name: className } = claim.spec.nodeClassRef
    const failures = this.#settingsOf(className)
    this.#failures.throttle(className, failures)
    const options = signal === undefined ? {} : { signal }
    const own = nodeNameIn(providerID)
    const name = own === '' ? await this.#nodeNameOf(claim, signal) : own
    this.#coming.get(name)?.abort()
    const node = name === '' ? undefined : await client.get(kinds.node, { name }, options)
    if (node !== undefined && !this.#failures.hasEnded(providerID, failures)) return
    if (node !== undefined && node.metadata.deletionTimestamp === undefined) {
      await client.delete(kinds.node, { name }, options).catch((error: unknown) => {
        if (!isKubeError(error, 'notFound')) throw error
      })
    }
    throw new ProviderError('nodeClaimNotFound', `instance ${providerID} has ended`)
  }

  /** For a claim without a valid provider ID: the Node with the claim's name. */
  async #nodeNameOf(claim: NodeClaim, signal: AbortSignal | undefined): Promise<string> {
    const node = (await this.#nodes(signal)).find((each) => claimNameOf(each) === claim.metadata.name)
    return node?.metadata.name ?? ''
  }

  ownsProviderID(providerID: string): boolean {
    return nodeNameIn(providerID) !== ''
  }

  async get(providerID: string, signal?: AbortSignal): Promise<ProviderInstance> {
    const name = nodeNameIn(providerID)
    const options = signal === undefined ? {} : { signal }
    const node =
      name === ''
        ? undefined
        : await withProviderErrors(() => this.#deps.client.get(kinds.node, { name }, options), signal)
    const isEnding = this.#failures.isEnding(providerID)
    if (node === undefined || (node.metadata.deletionTimestamp !== undefined && !isEnding)) {
      throw new ProviderError('nodeClaimNotFound', `no instance ${providerID}`)
    }
    return { ...instanceOf(node), ...(isEnding && { deleting: true }) }
  }

  async list(signal?: AbortSignal): Promise<readonly ProviderInstance[]> {
    return (await withProviderErrors(() => this.#nodes(signal), signal)).map(instanceOf)
  }

  getInstanceTypes(pool: NodePool): Promise<readonly InstanceType[]> {
    return Promise.resolve(this.#listed(pool.spec.template.spec.nodeClassRef.name))
  }

  /** Instances drift only if their node class names another image. */
  isDrifted({ metadata, spec }: NodeClaim): Promise<string | undefined> {
    const { image } = this.#settingsOf(spec.nodeClassRef.name)
    const isDrifted = image !== undefined && metadata.annotations?.[imageAnnotation] !== image
    return Promise.resolve(isDrifted ? 'ImageDrift' : undefined)
  }

  startControllers(signal: AbortSignal): void {
    signal.addEventListener('abort', () => {
      this.#stopped.abort(signal.reason)
    })
    const { client, runtime } = this.#deps
    const delayMsOf = (nodeClass: string) => this.#settingsOf(nodeClass).deviceDelayMs
    void new DevicePublisher({ client, runtime, types: this.#types, delayMsOf }).run(signal)
  }

  /** Prices and availability come from the given types, everything else from the provider's own. */
  #choice(claim: NodeClaim, instanceTypes: readonly InstanceType[]): Choice | undefined {
    const choice = cheapestChoice(claim, instanceTypes, this.#deps.runtime.random)
    const type = this.#types.find(({ name }) => name === choice?.type.name)
    return choice === undefined || type === undefined ? undefined : { type, offering: choice.offering }
  }

  /** The result of the launch. Others may have changed labels of the Node since. */
  #asLaunched(node: Node, claim: NodeClaim): ProviderInstance {
    const choice = choiceOf(node, this.#types)
    if (choice === undefined) return instanceOf(node)
    const { metadata } = node
    const image = metadata.annotations?.[imageAnnotation]
    const made = simulatedNode(claim, choice, {
      name: metadata.name,
      partition: metadata.labels?.[partitionLabel] ?? 'a',
      annotations: image === undefined ? {} : { [imageAnnotation]: image },
    })
    return instanceOf({ ...made, metadata: { ...metadata, ...made.metadata } })
  }

  #settingsOf(nodeClass: string): FailureSettings {
    return this.#failures.settingsOf(this.#deps.nodeClasses?.get({ name: nodeClass }))
  }

  #listed(nodeClass: string): readonly InstanceType[] {
    return this.#failures.listed(this.#types, this.#settingsOf(nodeClass))
  }

  async #nodes(signal?: AbortSignal): Promise<readonly Node[]> {
    const nodes = await this.#deps.client.list(kinds.node, {
      fields: instanceFields,
      ...(signal !== undefined && { signal }),
    })
    return nodes.filter((node) => node.spec?.providerID?.startsWith(providerIdPrefix) === true)
  }

  /**
   * Creates the Node after its delay. If that fails, the registration timeout finds it. Without a delay the first
   * attempt is awaited, so that a crash cannot come between the launch and its Node.
   */
  async #appear(node: Node, delayMs: number): Promise<void> {
    const { name } = node.metadata
    const calledOff = new AbortController()
    const signal = AbortSignal.any([this.#stopped.signal, calledOff.signal])
    if (delayMs === 0 && (await this.#attempt(node, 1))) return
    this.#coming.set(name, calledOff)
    const rest = async (): Promise<void> => {
      const { clock } = this.#deps.runtime
      try {
        await clock.sleep(delayMs, signal)
        for (let attempt = delayMs === 0 ? 2 : 1; attempt <= creation.attempts; attempt++) {
          if (attempt > 1) await clock.sleep(this.#pauseMs(attempt), signal)
          if (!(await this.#attempt(node, attempt))) continue
          // The caller who cancelled it found no Node to delete.
          if (calledOff.signal.aborted) await this.#deps.client.delete(kinds.node, { name })
          return
        }
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        this.#coming.delete(name)
      }
    }
    void rest()
  }

  /** @returns whether the Node exists. */
  async #attempt(node: Node, attempt: number): Promise<boolean> {
    try {
      await this.#deps.client.create(kinds.node, node)
      return true
    } catch (error) {
      if (isKubeError(error, 'alreadyExists')) return true
      const { name } = node.metadata
      this.#deps.runtime.logger.error('creating the simulated node failed', {
        Node: { name },
        attempt,
        error,
      })
      return false
    }
  }

  #pauseMs(attempt: number): number {
    const { pauseMs, growth, jitter } = creation
    return pauseMs * growth ** (attempt - 2) * (1 + jitter * unit(this.#deps.runtime.random))
  }
}

/** The name of the Node in a provider ID; empty if the ID belongs to another provider. */
function nodeNameIn(providerID: string): string {
  return providerID.startsWith(providerIdPrefix) ? providerID.slice(providerIdPrefix.length) : ''
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

/**
 * Shares a read among concurrent callers. Each result comes from a read that began after the call, so it is as fresh as
 * the caller's own. At most one read is in progress, and one is to follow.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>
  #current: Promise<unknown> = Promise.resolve()
  #next: Promise<T> | undefined

  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  /** Rejects if the read does. */
  ask(): Promise<T> {
    this.#next ??= this.#follow()
    return this.#next
  }

  async #follow(): Promise<T> {
    await this.#current
    this.#next = undefined
    const answer = this.#read()
    this.#current = Promise.allSettled([answer])
    return await answer
  }
}
