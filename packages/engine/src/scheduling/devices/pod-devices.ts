/** The devices of pods in one simulation: what nodes, open claims and new claims answer to pods that claim some. */
import type { PodReason } from '../../reasons/reasons.ts'
import type { Admission, ClaimAdmission } from '../claims/claim-admission.ts'
import type { ClaimClass } from '../claims/claim-class.ts'
import type { Answer, OpenClaim } from '../claims/open-claims.ts'
import type { CompiledProblem } from '../compiled-problem.ts'
import type { NodeFill } from '../nodes/node-fill.ts'
import type { HasDevices } from '../nodes/node-queue.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import type { PodTopology } from '../topology/pod-topology.ts'
import { type DeviceAdmission, DeviceAdmissions } from './device-admission.ts'
import type { DeviceRoom } from './device-room.ts'
import type { Taker } from './ledger.ts'
import type { TypeDevices } from './pools.ts'

/** A claim as what it would be opened for a pod, with its devices. */
export interface OpeningWithDevices {
  readonly taker: Taker
  readonly offered: DeviceAdmission<Admission>
}

/** Who else decides whether a claim takes a pod. */
export interface OtherRules {
  readonly admission: ClaimAdmission
  readonly topology: PodTopology
}

/** Without devices in the problem, pods claim none: every question is answered as for such pods. */
export class PodDevices {
  readonly #devices: DeviceAdmissions | undefined
  readonly #compiled: CompiledProblem
  readonly #rules: OtherRules
  /** Types that were asked for devices before a pod was refused them. */
  readonly #askedFor = new WeakMap<PodReason, ReadonlySet<TypeDevices>>()

  constructor(room: DeviceRoom | undefined, compiled: CompiledProblem, rules: OtherRules) {
    this.#devices = room && new DeviceAdmissions(room, compiled)
    this.#compiled = compiled
    this.#rules = rules
  }

  /** Whether pods may claim devices at all. */
  get areServed(): boolean {
    return this.#devices !== undefined
  }

  /** A new pod is tried. */
  restart(): void {
    this.#devices?.restart()
  }

  /** Why a pod of the shape that found no place has no devices, if these are what it lacks. */
  refusalOf({ claims }: PodShape): PodReason | undefined {
    const refusal = claims.length > 0 ? this.#devices?.refusal : undefined
    if (refusal === undefined) return undefined
    const reason: PodReason = { kind: 'devices', claim: refusal.claim, because: refusal.because }
    this.#askedFor.set(reason, this.#devices?.asked ?? new Set())
    return reason
  }

  /** The reason that {@link refusalOf} gave, with what is missing; any other as it is. */
  detailed(reason: PodReason): PodReason {
    const asked = this.#askedFor.get(reason)
    if (reason.kind !== 'devices' || asked === undefined || this.#devices === undefined) return reason
    return { ...reason, because: this.#devices.detailed(reason, asked) }
  }

  /** How nodes are asked for the devices of a pod; undefined when it claims none. */
  asked(pod: number, { claims }: PodShape): HasDevices | undefined {
    const devices = this.#devices
    return devices === undefined || claims.length === 0 ? undefined : (node) => devices.onNode(node, pod)
  }

  /** Gives the pod the devices of a node that has them. */
  takeOnNode(node: NodeFill, pod: number, { claims }: PodShape): void {
    if (claims.length > 0) this.#devices?.takeOnNode(node, pod)
  }

  /** What a claim says that would take the pod, its devices apart. */
  answer(
    given: Answer,
    claim: OpenClaim,
    pod: number,
    shape: PodShape,
    confined: readonly ClaimClass[],
  ): Answer {
    if (given !== 'accepts' || shape.claims.length === 0) return given
    if (this.onClaim(claim, pod, shape, confined) !== undefined) return 'accepts'
    const mayHaveThemLater = shape.sharesClaims || this.#rules.topology.concernsDomains(shape)
    return mayHaveThemLater ? 'notNow' : 'never'
  }

  /** As what an open claim takes the pod together with its devices; undefined when it does not. */
  onClaim(
    claim: OpenClaim,
    pod: number,
    shape: PodShape,
    confined: readonly ClaimClass[],
  ): DeviceAdmission<Admission> | undefined {
    if (this.#devices === undefined || shape.claims.length === 0) return undefined
    claim.taker ??= {}
    return this.#devices.onClaim(
      { taker: claim.taker, amounts: claim.amounts },
      pod,
      shape,
      confined,
      (targets) => this.#rules.admission.admit(claim, shape, targets),
    )
  }

  /** Whether a claim can be opened only as types that have devices for pods of the shape. */
  concerns({ claims }: PodShape): boolean {
    return this.#devices !== undefined && claims.length > 0
  }

  /** As what a claim is opened for a pod with devices: a kind of known price before others. */
  onNewClaim(
    pod: number,
    shape: PodShape,
    confined: readonly ClaimClass[],
  ): OpeningWithDevices | PodReason | undefined {
    const taker = {}
    const amounts = new Float64Array(this.#compiled.space.size)
    const priced = confined.filter(({ isPriced }) => isPriced)
    const unpriced = confined.flatMap((target) => this.#compiled.classes.unpriced(target) ?? [])
    let refusal: PodReason | undefined
    const targets = [...priced, ...unpriced]
    const offered = this.#devices?.onClaim({ taker, amounts }, pod, shape, targets, (having) => {
      const admission = this.#rules.admission.open(shape, having)
      if (admission === undefined || !('kind' in admission)) return admission
      refusal = { kind: 'reservationDeferred', variant: admission.variant }
      return undefined
    })
    return offered === undefined ? refusal : { taker, offered }
  }

  /** Gives a claim the devices with which it was admitted, as far as its class still has their types. */
  takeOnClaim(claim: OpenClaim, offered: DeviceAdmission<Admission>): void {
    this.#devices?.takeOnClaim(claim, offered)
  }

  /** Gives back what a claim has only as types that it will not become. */
  retain(claim: OpenClaim): void {
    this.#devices?.retain(claim)
  }

  /** Drivers that have to publish devices on the claim's node. */
  driversOf(claim: OpenClaim): readonly string[] {
    return this.#devices?.driversOf(claim) ?? []
  }
}
