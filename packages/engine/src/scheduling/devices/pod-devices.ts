/** The devices of pods in one simulation, on nodes, open claims and new claims. */
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
import type { DeviceAllocator } from './device-allocator.ts'
import type { Consumer } from './ledger.ts'
import type { TypeDevices } from './pools.ts'

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
  readonly #askedFor = new WeakMap<PodReason, ReadonlySet<TypeDevices>>()

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
  refusalOf({ claims }: PodShape): PodReason | undefined {
    const refusal = claims.length > 0 ? this.#devices?.refusal : undefined
    if (refusal === undefined) return undefined
    const reason: PodReason = { kind: 'devices', claim: refusal.claim, because: refusal.because }
    this.#askedFor.set(reason, this.#devices?.asked ?? new Set())
    return reason
  }

  /** A reason of {@link refusalOf} with what is missing; other reasons unchanged. */
  detailed(reason: PodReason): PodReason {
    const asked = this.#askedFor.get(reason)
    if (reason.kind !== 'devices' || asked === undefined || this.#devices === undefined) return reason
    return { ...reason, because: this.#devices.detailed(reason, asked) }
  }

  /** Tells whether a node has devices for the pod; undefined if the pod has no ResourceClaims. */
  asked(pod: number, { claims }: PodShape): HasDevices | undefined {
    const devices = this.#devices
    return devices === undefined || claims.length === 0 ? undefined : (node) => devices.onNode(node, pod)
  }

  /** Allocates devices of the node for the pod. */
  takeOnNode(node: NodeFill, pod: number, { claims }: PodShape): void {
    if (claims.length > 0) this.#devices?.takeOnNode(node, pod)
  }

  /** The answer of a claim that would accept the pod if it had the devices. */
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

  /** How an open claim accepts the pod with its devices; undefined if it does not. */
  onClaim(
    claim: OpenClaim,
    pod: number,
    shape: PodShape,
    confined: readonly ClaimClass[],
  ): DeviceAdmission<Admission> | undefined {
    if (this.#devices === undefined || shape.claims.length === 0) return undefined
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
  concerns({ claims }: PodShape): boolean {
    return this.#devices !== undefined && claims.length > 0
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
