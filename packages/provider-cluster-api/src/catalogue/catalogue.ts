/**
 * The instance types of NodePools, from the MachineDeployments of the hub (cluster-api.md 4 to 6, 11, 12).
 */
import { type InstanceType, labels, type NodePool, normalizedLabel, type PriceList } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { ProviderError } from '@tenon/provider'
import type { Logger } from '@tenon/runtime'
import { compareKeys, hubKeyOf, hubText } from '../hub/keys.ts'
import type { Hub } from '../hub/hub.ts'
import { clusterOf } from '../hub/objects-of-hub.ts'
import type { ReplicaContests } from './replica-contests.ts'
import { type ClusterAPINodeClass, clusterAPINodeClassKind } from '../node-class.ts'
import type { MachineDeployment } from '../objects.ts'
import { standstillOf } from './growth.ts'
import { instanceTypesOf } from './instance-types.ts'
import { isSelected, membersOf, selectorProblems } from './members.ts'
import { type Architecture, defaultArchitecture } from './node-labels.ts'
import { fitsPool } from './node-taints.ts'
import { type Participant, type Reading } from './participant.ts'
import { describedLabels } from './pool-rules.ts'
import { readDeployment } from './read-deployment.ts'
import type { TemplateFacts } from './template-facts.ts'
import type { InfrastructureTemplates } from './templates.ts'

/** Maximum cached lists of types, and cached types. */
const mostLists = 500
const mostTypes = 5000
/** Maximum remembered log messages about exclusions. */
const maxReported = 2000

export interface CatalogueDependencies {
  readonly hub: Pick<Hub, 'state' | 'names' | 'scope'>
  readonly templates: Pick<InfrastructureTemplates, 'factsOf'>
  readonly prices: PriceList
  readonly logger: Logger
  readonly nodeClasses: Pick<Cache<ClusterAPINodeClass>, 'get'>
  /** Other controllers that overwrite replicas; absent = none. */
  readonly contests?: Pick<ReplicaContests, 'because'>
  /** Architecture of nodes without an architecture label; default amd64. */
  readonly architecture?: Architecture
}

/** The MachineDeployments of a node class. */
export type Readings =
  /** Ordered by namespace and name. */
  | { readonly kind: 'read'; readonly readings: readonly Reading[] }
  /** None is used, for a reason that a user can fix: a clause without a full stop. */
  | { readonly kind: 'refused'; readonly because: string }
  /** The hub has not been read yet. */
  | { readonly kind: 'waiting'; readonly because: string }

interface Known {
  readonly facts: TemplateFacts | undefined
  readonly held: string | undefined
  readonly reading: Reading
}

interface Listed {
  readonly participants: readonly Participant[]
  readonly types: readonly InstanceType[]
}

/** The instance types of NodePools. Unchanged types and lists are the same objects from call to call. */
export class Catalogue {
  readonly #deps: CatalogueDependencies
  /** A cached MachineDeployment is the same object until it changes. */
  readonly #known = new WeakMap<MachineDeployment, Known>()
  /** By the labels in a NodePool; valid as long as its participants are the same. */
  readonly #lists = new Map<string, Listed>()
  readonly #types = new Map<string, InstanceType>()
  readonly #loggedReasons = new Map<string, string>()

  constructor(deps: CatalogueDependencies) {
    this.#deps = deps
  }

  /** From the price file; undefined if it names none. */
  get currency(): string | undefined {
    return this.#deps.prices.currency
  }

  /** The members of a node class and why others are not used. */
  async readingsOf(nodeClass: ClusterAPINodeClass): Promise<Readings> {
    const { hub } = this.#deps
    const [problem] = selectorProblems(nodeClass.spec?.scalableResourceSelector)
    if (problem !== undefined)
      return {
        kind: 'refused',
        because: `spec.scalableResourceSelector.${problem.field}: ${problem.message}; ${problem.fix}`,
      }
    if (hub.state.kind === 'waiting') return hub.state
    const all = hub.state.hub.caches.machineDeployments.list()
    const membership = membersOf(all, hub.names, hub.scope)
    if (membership.kind === 'refused') return membership
    const selected = membership.deployments
      .filter((deployment) => isSelected(nodeClass, deployment))
      .toSorted((a, b) => compareKeys(hubKeyOf(a), hubKeyOf(b)))
    return { kind: 'read', readings: await Promise.all(selected.map((each) => this.reading(each))) }
  }

  /** Reads one MachineDeployment, member or not. */
  async reading(deployment: MachineDeployment): Promise<Reading> {
    const { hub, templates, prices, architecture = defaultArchitecture(undefined) } = this.#deps
    const facts = await templates.factsOf(deployment)
    const held = this.#held(deployment)
    const known = this.#known.get(deployment)
    if (known !== undefined && known.facts === facts && known.held === held) return known.reading
    const own = readDeployment(deployment, facts, prices, hub.names, architecture)
    const isContested = this.#contested(deployment) !== undefined
    const reading = held === undefined ? own : heldBack(own, held, isContested)
    this.#known.set(deployment, { facts, held, reading })
    this.#tell(reading)
    return reading
  }

  #contested(deployment: MachineDeployment): string | undefined {
    return this.#deps.contests?.because(hubKeyOf(deployment))
  }

  /** Why it gets no new replicas now, apart from its own state. */
  #held(deployment: MachineDeployment): string | undefined {
    const { hub } = this.#deps
    if (hub.state.kind === 'waiting') return undefined
    return this.#contested(deployment) ?? standstillOf(deployment, hub.names, clusterOf(hub, deployment))
  }

  /**
   * The MachineDeployments for a NodePool, ordered by namespace and name.
   * @throws ProviderError if its node class cannot be used, or the hub was not read yet.
   */
  async participantsOf(pool: NodePool): Promise<readonly Participant[]> {
    const nodeClass = this.#classOf(pool)
    const found = await this.readingsOf(nodeClass)
    if (found.kind !== 'read')
      throw new ProviderError(
        // Not reported as a pool without types, as its types are unknown.
        found.kind === 'waiting' ? 'unevaluatedNodePool' : 'other',
        `ClusterAPINodeClass ${nodeClass.metadata.name}: ${found.because}`,
      )
    return found.readings.flatMap((each) =>
      each.kind === 'participant' && fitsPool(each.participant, pool) ? [each.participant] : [],
    )
  }

  /**
   * The types for a NodePool, including those without an available offering.
   * @throws ProviderError if its node class cannot be used, or the hub was not read yet.
   */
  async typesOf(pool: NodePool): Promise<readonly InstanceType[]> {
    const participants = await this.participantsOf(pool)
    const customLabels = customLabelsOf(pool)
    const id = JSON.stringify([participants.map(({ key }) => hubText(key)), customLabels])
    const listed = this.#lists.get(id)
    if (listed !== undefined && isSameList(listed.participants, participants)) return listed.types
    const types = Object.freeze(
      instanceTypesOf(participants, new Set(customLabels)).map((type) => this.#interned(type)),
    )
    const kept = listed !== undefined && isSameList(listed.types, types) ? listed.types : types
    if (this.#lists.size >= mostLists) this.#lists.clear()
    this.#lists.set(id, { participants, types: kept })
    return kept
  }

  #classOf(pool: NodePool): ClusterAPINodeClass {
    const { group, kind, name } = pool.spec.template.spec.nodeClassRef
    const poolName = pool.metadata.name
    const isOfThisKind = group === clusterAPINodeClassKind.group && kind === clusterAPINodeClassKind.kind
    if (name === '' || !isOfThisKind)
      throw new ProviderError(
        'other',
        `NodePool ${poolName}: spec.template.spec.nodeClassRef must name a ClusterAPINodeClass`,
      )
    const nodeClass = this.#deps.nodeClasses.get({ name })
    if (nodeClass === undefined)
      throw new ProviderError('other', `NodePool ${poolName}: ClusterAPINodeClass ${name} does not exist`)
    return nodeClass
  }

  /** Replicas change all the time, types rarely. */
  #interned(type: InstanceType): InstanceType {
    const id = JSON.stringify(type)
    const known = this.#types.get(id)
    if (known !== undefined) return known
    if (this.#types.size >= mostTypes) this.#types.clear()
    this.#types.set(id, type)
    return type
  }

  #tell(reading: Reading): void {
    const key = hubText(reading.kind === 'excluded' ? reading.key : reading.participant.key)
    const because = reading.kind === 'excluded' ? reading.because : undefined
    if (this.#loggedReasons.get(key) === because) return
    if (this.#loggedReasons.size >= maxReported) this.#loggedReasons.clear()
    if (because === undefined) this.#loggedReasons.delete(key)
    else {
      this.#loggedReasons.set(key, because)
      this.#deps.logger.warn('MachineDeployment is not used', { MachineDeployment: key, because })
    }
  }
}

/** Labels in a NodePool that MachineDeployments do not always have, in alphabetical order. */
function customLabelsOf({ spec: { template } }: NodePool): readonly string[] {
  const named = [
    ...(template.spec.requirements ?? []).map(({ key }) => key),
    ...Object.keys(template.metadata?.labels ?? {}),
  ].map(normalizedLabel)
  const always = new Set([...describedLabels, labels.nodePool])
  return [...new Set(named)].filter((key) => !always.has(key)).toSorted()
}

function heldBack(reading: Reading, because: string, isContested: boolean): Reading {
  if (reading.kind === 'excluded') return reading
  const { key, isKept } = reading.participant
  return {
    kind: 'participant',
    participant: {
      ...reading.participant,
      isKept: isKept || isContested,
      unavailability: { because: `MachineDeployment ${hubText(key)}: ${because}` },
    },
  }
}

function isSameList<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((each, i) => each === other[i])
}
