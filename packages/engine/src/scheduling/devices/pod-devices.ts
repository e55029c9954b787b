/** The devices of pods in one simulation, on nodes, open claims and new claims. */
import type { PodReason } from '../../reasons/reasons.ts'
import type { Admission, ClaimAdmission } from '../claims/claim-admission.ts'
import { type ClaimClass, type ClaimClasses, rowsHolding } from '../claims/claim-class.ts'
import type { TypeRow } from '../claims/pool-template.ts'
import type { Answer, OpenClaim } from '../claims/open-claims.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import type { NodeFill } from '../nodes/node-fill.ts'
import type { HasDevices } from '../nodes/node-queue.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import type { PodTopology } from '../topology/pod-topology.ts'
import type { DeviceAllocator, DeviceOffer, ExtendedDemand } from './device-allocator.ts'
import type { Consumer } from './ledger.ts'
import type { TypeDevices } from './pools.ts'
import { comparePrices, type InstanceType, labels } from '@tenon/api'
import type { DeviceRefusal } from '../../reasons/device-reasons.ts'
import { labelRequirements, type Requirements } from '../../requirements/requirements.ts'
import type { RequirementStates } from '../../requirements/states.ts'
import { addTo } from '../pods/resource-space.ts'

/** How a new claim is opened for a pod with devices. */
export interface OpeningWithDevices {
  readonly consumer: Consumer
  readonly offered: DeviceAdmission<Admission>
}

/** The rules besides devices that decide whether a claim accepts a pod. */
export interface OtherRules {
  readonly admission: ClaimAdmission
  readonly topology: PodTopology
}

/** If the problem has no devices, it treats every pod as one without ResourceClaims. */
export class PodDevices {
  readonly #devices: DeviceAdmissions | undefined
  readonly #compiled: CompiledProblem
  readonly #rules: OtherRules
  /** For each refusal, the devices that were considered; for its explanation. */
  readonly #askedFor = new WeakMap<
    PodReason,
    { readonly shape: PodShape; readonly asked: ReadonlySet<TypeDevices> }
  >()

  constructor(room: DeviceAllocator | undefined, compiled: CompiledProblem, rules: OtherRules) {
    this.#devices = room && new DeviceAdmissions(room, compiled)
    this.#compiled = compiled
    this.#rules = rules
  }

  /** Whether the problem has devices. */
  get areServed(): boolean {
    return this.#devices !== undefined
  }

  /** Call it before each pod. */
  restart(): void {
    this.#devices?.restart()
  }

  /** The reason if the pod could not be placed for lack of devices. */
  refusalOf(shape: PodShape): PodReason | undefined {
    const { refusal, asked } = (shape.usesDevices ? this.#devices : undefined) ?? {}
    if (refusal === undefined) return undefined
    const { claim, because } = refusal
    const reason: PodReason = isExtended(claim)
      ? { kind: 'extendedResources', resources: shape.servedResources, because }
      : { kind: 'devices', claim, because }
    this.#askedFor.set(reason, { shape, asked: asked ?? new Set() })
    return reason
  }

  /** A reason of {@link refusalOf} with what is missing; other reasons unchanged. */
  detailed(reason: PodReason): PodReason {
    const refused = this.#askedFor.get(reason)
    if (refused === undefined || this.#devices === undefined) return reason
    if (reason.kind === 'devices')
      return { ...reason, because: this.#devices.detailed(reason.because, reason.claim, refused.asked) }
    if (reason.kind !== 'extendedResources') return reason
    return { ...reason, because: this.#devices.detailed(reason.because, refused.shape, refused.asked) }
  }

  /** Tells whether a node has devices for the pod; undefined if the pod uses none. */
  asked(pod: number, shape: PodShape): HasDevices | undefined {
    const devices = this.#devices
    return devices === undefined || !shape.usesDevices
      ? undefined
      : (node) => devices.onNode(node, pod, shape)
  }

  /** Allocates devices of the node for the pod. */
  takeOnNode(node: NodeFill, pod: number, shape: PodShape): void {
    if (shape.usesDevices) this.#devices?.takeOnNode(node, pod, shape)
  }

  /** The answer of a claim that would accept the pod if it had the devices. */
  answer(
    given: Answer,
    claim: OpenClaim,
    pod: number,
    shape: PodShape,
    confined: readonly ClaimClass[],
  ): Answer {
    if (given !== 'accepts' || !shape.usesDevices) return given
    if (this.onClaim(claim, pod, shape, confined) !== undefined) return 'accepts'
    const mayHaveThemLater = shape.sharesClaims || this.#rules.topology.concernsDomains(shape)
    return mayHaveThemLater ? 'notNow' : 'never'
  }

  /** How an open claim accepts the pod with its devices; undefined if it does not. */
  onClaim(
    claim: OpenClaim,
    pod: number,
    shape: PodShape,
    confined: readonly ClaimClass[],
  ): DeviceAdmission<Admission> | undefined {
    if (this.#devices === undefined || !shape.usesDevices) return undefined
    claim.consumer ??= {}
    return this.#devices.onClaim(
      { consumer: claim.consumer, amounts: claim.amounts },
      pod,
      shape,
      confined,
      (targets) => this.#rules.admission.admit(claim, shape, targets),
    )
  }

  /** Whether new claims for the shape need types with devices. */
  concerns({ usesDevices }: PodShape): boolean {
    return this.#devices !== undefined && usesDevices
  }

  /** How a new claim is opened for a pod with devices. Types of known price are tried first. */
  onNewClaim(
    pod: number,
    shape: PodShape,
    confined: readonly ClaimClass[],
  ): OpeningWithDevices | PodReason | undefined {
    const consumer = {}
    const amounts = new Float64Array(this.#compiled.space.size)
    const priced = confined.filter(({ isPriced }) => isPriced)
    const unpriced = confined.flatMap((target) => this.#compiled.classes.unpriced(target) ?? [])
    let refusal: PodReason | undefined
    const targets = [...priced, ...unpriced]
    const offered = this.#devices?.onClaim({ consumer, amounts }, pod, shape, targets, (having) => {
      const admission = this.#rules.admission.open(shape, having)
      if (admission === undefined || !('kind' in admission)) return admission
      refusal = { kind: 'reservationDeferred', variant: admission.variant }
      return undefined
    })
    return offered === undefined ? refusal : { consumer, offered }
  }

  /** Allocates the devices of the admission, for the types that the claim's class still has. */
  takeOnClaim(claim: OpenClaim, offered: DeviceAdmission<Admission>): void {
    this.#devices?.takeOnClaim(claim, offered)
  }

  /** Frees devices of types that the claim can no longer become. */
  retain(claim: OpenClaim): void {
    this.#devices?.retain(claim)
  }

  /** Drivers that must publish devices on the claim's node. */
  driversOf(claim: OpenClaim): readonly string[] {
    return this.#devices?.driversOf(claim) ?? []
  }
}

const nothingUndefined: ReadonlySet<string> = new Set()

/** Names of claims contain no space, so it cannot collide. */
const extendedPrefix = 'extended resources of '

/** Whether it is the claim for a pod's extended resources, which does not exist yet. */
const isExtended = (claim: string): boolean => claim.startsWith(extendedPrefix)

/** How a claim accepts a pod together with its devices. */
interface DeviceAdmission<A> {
  readonly admission: A
  readonly offer: DeviceOffer
}

/** Checks which nodes and claims have devices for a pod, and allocates them (devices.md 3.16). */
class DeviceAdmissions {
  readonly #room: DeviceAllocator
  readonly #compiled: CompiledProblem
  readonly #labels = new WeakMap<NodeFill, Requirements>()
  #knownTypes: ReadonlyMap<string, InstanceType> | undefined
  #refusal: DeviceRefusal | undefined
  /** Devices of new nodes that were considered since {@link restart}. */
  #asked = new Set<TypeDevices>()

  constructor(room: DeviceAllocator, compiled: CompiledProblem) {
    this.#room = room
    this.#compiled = compiled
  }

  /** Instance types of all NodePools, by name; computed for the first pod with ResourceClaims. */
  #types(): ReadonlyMap<string, InstanceType> {
    this.#knownTypes ??= new Map(
      this.#compiled.problem.pools
        .flatMap(({ instanceTypes }) => instanceTypes)
        .map((type) => [type?.name, type]),
    )
    return this.#knownTypes
  }

  /** Call it before each pod. */
  restart(): void {
    this.#room.restart()
    this.#refusal = undefined
    this.#asked = new Set()
  }

  /** Why the last consumer since {@link restart} has no devices. */
  get refusal(): DeviceRefusal | undefined {
    return this.#refusal
  }

  /** The devices that new nodes for the pod would have. */
  get asked(): ReadonlySet<TypeDevices> {
    return this.#asked
  }

  /** The reason of a refusal, with what is missing if no devices were found. */
  detailed(
    because: DeviceRefusal['because'],
    claim: string | PodShape,
    asked: ReadonlySet<TypeDevices>,
  ): DeviceRefusal['because'] {
    if (because.kind !== 'noDevices') return because
    const types = Map.groupBy(this.#types().values(), (type) => this.#room.compiled.ofType(type))
    const names = new Map([...types].map(([devices, of]) => [devices, of.map(({ name }) => name)]))
    const { compiled } = this.#room
    const missing =
      typeof claim === 'string'
        ? compiled.claim(claim)
        : compiled.extendedClaim({ spec: claim.whole, resources: claim.servedResources }, compiled.none)
    const shortage = this.#room.shortage(missing, { asked, types: names })
    return shortage === undefined ? because : { kind: 'noDevices', shortage }
  }

  /** Whether the node has devices for the pod. */
  onNode(node: NodeFill, pod: number, shape: PodShape): boolean {
    return this.#offerOf(node, pod, shape) !== undefined
  }

  /** Allocates devices of the node for the pod. */
  takeOnNode(node: NodeFill, pod: number, shape: PodShape): void {
    const offer = this.#offerOf(node, pod, shape)
    if (offer !== undefined) this.#room.take(offer, offer.types)
  }

  #offerOf(node: NodeFill, pod: number, shape: PodShape): DeviceOffer | undefined {
    const { input } = node
    const devices = this.#room.compiled
    let requirements = this.#labels.get(node)
    if (requirements === undefined) {
      requirements = labelRequirements(input.labels)
      this.#labels.set(node, requirements)
    }
    const type = this.#types().get(input.labels[labels.instanceType] ?? '')
    const counted = this.#compiled.servedResources.countedOn(input.available)
    const question = {
      consumer: node,
      nodeName: input.name,
      mayBeUndefined: nothingUndefined,
      requirements,
      isStarting: !input.initialized,
      types: [devices.counting(input.initialized ? devices.none : devices.ofType(type), counted)],
    }
    const offer = this.#room.offer(this.#claimsOf(pod), question, this.#demandOf(pod, shape))
    // That this node has no devices does not mean that new nodes have none.
    const isForAll = !('kind' in offer) || ['problem', 'tooManySteps'].includes(offer.because.kind)
    return isForAll ? this.#noted(offer) : undefined
  }

  /**
   * How a claim accepts the pod with devices.
   * @param targets classes that the claim may get, in the order in which they are tried.
   * @param admit decides everything but devices.
   */
  onClaim<A extends object>(
    { consumer, amounts }: { readonly consumer: Consumer; readonly amounts: Float64Array },
    pod: number,
    shape: PodShape,
    targets: readonly ClaimClass[],
    admit: (targets: readonly ClaimClass[]) => A | undefined,
  ): DeviceAdmission<A> | undefined {
    const all = amounts.slice()
    addTo(all, shape.amounts)
    for (const target of targets) {
      for (const rows of this.#alike(target, rowsHolding(target, all), shape)) {
        for (const { type } of rows) this.#asked.add(this.#room.compiled.ofType(type.type))
        const offer = this.#offerOn(consumer, { pod, shape }, target, rows)
        if (offer === undefined) continue
        const placed = this.#classes.withDevices(target, offer.requirements, (row) =>
          offer.types.has(this.#devicesOf(row)),
        )
        const admission = placed && admit([placed])
        if (admission !== undefined) return { admission, offer }
      }
    }
    return undefined
  }

  /**
   * The rows by which of the pod's extended resources they have themselves, those with the cheapest row first. A claim keeps
   * rows of one sort: what its node has to wait for, a device plugin or a driver, is the same for all of them.
   */
  #alike(
    target: ClaimClass,
    rows: readonly TypeRow[],
    { servedResources }: PodShape,
  ): readonly (readonly TypeRow[])[] {
    if (rows.length === 0) return []
    if (servedResources.length === 0) return [rows]
    const groups = Map.groupBy(rows, (row) => {
      const { counted } = this.#devicesOf(row)
      return servedResources.filter((name) => counted?.has(name) === true).join(' ')
    })
    const sorts = [...groups.values()].map((group) => ({
      group,
      price: group.map((row) => this.#classes.bestOffer(target, row).pricePerHour).toSorted(comparePrices)[0],
    }))
    return sorts.toSorted((a, b) => comparePrices(a.price, b.price)).map(({ group }) => group)
  }

  #offerOn(
    consumer: Consumer,
    { pod, shape }: { readonly pod: number; readonly shape: PodShape },
    target: ClaimClass,
    rows: readonly TypeRow[],
  ): DeviceOffer | undefined {
    return this.#noted(
      this.#room.offer(
        this.#claimsOf(pod),
        {
          consumer,
          nodeName: undefined,
          mayBeUndefined: this.#compiled.problem.policy.wellKnownLabels,
          requirements: this.#states.get(target.state),
          isStarting: true,
          types: rows.map((row) => this.#devicesOf(row)),
        },
        this.#demandOf(pod, shape),
      ),
    )
  }

  /** Allocates the devices of an offer, for the types that the claim's class still has. */
  takeOnClaim(claim: OpenClaim, { offer }: DeviceAdmission<Admission>): void {
    this.#room.take(offer, this.#typesOf(claim))
  }

  /** Frees devices of types that the claim can no longer become. */
  retain(claim: OpenClaim): void {
    if (claim.consumer !== undefined) this.#room.retain(claim.consumer, this.#typesOf(claim))
  }

  /** Drivers that must publish devices on the claim's node. */
  driversOf({ consumer }: OpenClaim): readonly string[] {
    return consumer === undefined ? [] : this.#room.driversOf(consumer)
  }

  #typesOf({ class: of, amounts }: OpenClaim): ReadonlySet<TypeDevices> {
    return new Set(rowsHolding(of, amounts).map((row) => this.#devicesOf(row)))
  }

  #devicesOf({ type, group }: TypeRow): TypeDevices {
    const { compiled } = this.#room
    const counted = this.#compiled.servedResources.countedIn(group.allocatable)
    return compiled.counting(compiled.ofType(type.type), counted)
  }

  #demandOf(pod: number, { whole, servedResources }: PodShape): ExtendedDemand | undefined {
    if (servedResources.length === 0) return undefined
    const uid = this.#compiled.problem.uids[pod] ?? ''
    return { name: `${extendedPrefix}${uid}`, spec: whole, resources: servedResources }
  }

  #claimsOf(pod: number): readonly string[] {
    return this.#compiled.problem.deviceClaims.get(pod) ?? []
  }

  #noted(offer: DeviceOffer | DeviceRefusal): DeviceOffer | undefined {
    if (!('kind' in offer)) return offer
    this.#refusal = offer
    return undefined
  }

  get #classes(): ClaimClasses {
    return this.#compiled.classes
  }

  get #states(): RequirementStates {
    return this.#compiled.states
  }
}
