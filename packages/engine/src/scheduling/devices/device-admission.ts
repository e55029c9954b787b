/** Checks which nodes and claims have devices for a pod, and allocates them (devices.md 3.16). */
import { type InstanceType, labels } from '@tenon/api'
import type { DeviceRefusal } from '../../reasons/device-reasons.ts'
import { labelRequirements, type Requirements } from '../../requirements/requirements.ts'
import type { RequirementStates } from '../../requirements/states.ts'
import type { Admission } from '../claims/claim-admission.ts'
import { type ClaimClass, type ClaimClasses, rowsHolding } from '../claims/claim-class.ts'
import type { OpenClaim } from '../claims/open-claims.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import type { NodeFill } from '../nodes/node-fill.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import { addTo } from '../pods/resource-space.ts'
import type { DeviceOffer, DeviceAllocator } from './device-allocator.ts'
import type { Consumer } from './ledger.ts'
import type { TypeDevices } from './pools.ts'

const nothingUndefined: ReadonlySet<string> = new Set()

/** How a claim accepts a pod together with its devices. */
export interface DeviceAdmission<A> {
  readonly admission: A
  readonly offer: DeviceOffer
}

export class DeviceAdmissions {
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
    { claim, because }: Pick<DeviceRefusal, 'because' | 'claim'>,
    asked: ReadonlySet<TypeDevices>,
  ): DeviceRefusal['because'] {
    if (because.kind !== 'noDevices') return because
    const types = Map.groupBy(this.#types().values(), (type) => this.#devicesOf(type))
    const names = new Map([...types].map(([devices, of]) => [devices, of.map(({ name }) => name)]))
    const shortage = this.#room.shortage(claim, { asked, types: names })
    return shortage === undefined ? because : { kind: 'noDevices', shortage }
  }

  /** Whether the node has devices for the pod. */
  onNode(node: NodeFill, pod: number): boolean {
    return this.#offerOf(node, pod) !== undefined
  }

  /** Allocates devices of the node for the pod. */
  takeOnNode(node: NodeFill, pod: number): void {
    const offer = this.#offerOf(node, pod)
    if (offer !== undefined) this.#room.take(offer, offer.types)
  }

  #offerOf(node: NodeFill, pod: number): DeviceOffer | undefined {
    const { input } = node
    const devices = this.#room.compiled
    let requirements = this.#labels.get(node)
    if (requirements === undefined) {
      requirements = labelRequirements(input.labels)
      this.#labels.set(node, requirements)
    }
    const type = this.#types().get(input.labels[labels.instanceType] ?? '')
    const offer = this.#room.offer(this.#claimsOf(pod), {
      consumer: node,
      nodeName: input.name,
      mayBeUndefined: nothingUndefined,
      requirements,
      isStarting: !input.initialized,
      types: [input.initialized ? devices.none : devices.ofType(type)],
    })
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
      const rows = rowsHolding(target, all)
      if (rows.length === 0) continue
      const offer = this.#offerOn(
        consumer,
        pod,
        target,
        rows.map(({ type }) => this.#noteAsked(this.#devicesOf(type.type))),
      )
      if (offer === undefined) continue
      const placed = this.#classes.withDevices(target, offer.requirements, ({ type }) =>
        offer.types.has(this.#devicesOf(type.type)),
      )
      const admission = placed && admit([placed])
      if (admission !== undefined) return { admission, offer }
    }
    return undefined
  }

  #offerOn(
    consumer: Consumer,
    pod: number,
    target: ClaimClass,
    types: Iterable<TypeDevices>,
  ): DeviceOffer | undefined {
    return this.#noted(
      this.#room.offer(this.#claimsOf(pod), {
        consumer,
        nodeName: undefined,
        mayBeUndefined: this.#compiled.problem.policy.wellKnownLabels,
        requirements: this.#states.get(target.state),
        isStarting: true,
        types,
      }),
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
    return new Set(rowsHolding(of, amounts).map(({ type }) => this.#devicesOf(type.type)))
  }

  #noteAsked(type: TypeDevices): TypeDevices {
    this.#asked.add(type)
    return type
  }

  #devicesOf(type: InstanceType): TypeDevices {
    return this.#room.compiled.ofType(type)
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
