/** The DRA drivers of one node: publish its devices once it is Ready, and prepare those of starting pods. */
import { kinds, type Pod, type ResourceClaim, type ResourceSliceTemplate, slicesOf } from '@tenon/api'
import { consumerOf } from '@tenon/filters'
import type { KubeletSpec } from '../contract.ts'
import { attempt, type KubeletContext } from './kubelet-context.ts'
import { draw } from './settings.ts'

export class NodeDevices {
  readonly #context: KubeletContext
  readonly #nodeName: string
  readonly #templates: readonly ResourceSliceTemplate[]
  #isRunning = false
  #cancel: (() => void) | undefined

  constructor(context: KubeletContext, { nodeName, devices = [] }: KubeletSpec) {
    this.#context = context
    this.#nodeName = nodeName
    this.#templates = devices
  }

  /**
   * Call it when the node is Ready.
   * @param delayMs until the devices are published.
   */
  begin(delayMs?: number): void {
    if (this.#templates.length === 0) return
    const { random, settings, timers } = this.#context
    this.#cancel = timers.after(delayMs ?? draw(random, settings.deviceDelay), () => {
      this.#isRunning = true
      this.assert()
    })
  }

  stop(): void {
    this.#isRunning = false
    this.#cancel?.()
  }

  /** Publishes missing slices, for example after the Node was deleted and registered again. */
  assert(): void {
    if (!this.#isRunning) return
    const { api, logger } = this.#context
    const node = api.get(kinds.node, undefined, this.#nodeName)
    if (node === undefined) return
    for (const slice of slicesOf(this.#templates, node)) {
      if (api.get(kinds.resourceSlice, undefined, slice.metadata.name) !== undefined) continue
      attempt(logger, 'ResourceSlice could not be created', () => api.create(kinds.resourceSlice, slice))
    }
  }

  /** Whether every claim of the pod is allocated, reserved for the pod, and its drivers run here. */
  isReadyFor(pod: Pod): boolean {
    const references = pod.spec.resourceClaims ?? []
    const extended = pod.status?.extendedResourceClaimStatus?.resourceClaimName
    if (references.length === 0 && extended === undefined) return true
    const { api } = this.#context
    const drivers = new Set(
      api
        .list(kinds.resourceSlice)
        .filter(({ spec }) => (spec.nodeName ?? this.#nodeName) === this.#nodeName)
        .map(({ spec }) => spec.driver),
    )
    const { namespace } = pod.metadata
    const isPrepared = (claimName: string): boolean => {
      const claim = api.get(kinds.resourceClaim, namespace, claimName)
      return (
        claim !== undefined && isFor(claim, pod) && driversOf(claim).every((driver) => drivers.has(driver))
      )
    }
    if (extended !== undefined && !isPrepared(extended)) return false
    return references.every(({ name, resourceClaimName }) => {
      const made = pod.status?.resourceClaimStatuses?.find((each) => each.name === name)
      const claimName = resourceClaimName ?? made?.resourceClaimName
      return claimName === undefined ? made !== undefined : isPrepared(claimName)
    })
  }
}

function isFor(claim: ResourceClaim, pod: Pod): boolean {
  const { uid } = consumerOf(claim, pod)
  return claim.status?.reservedFor?.some((consumer) => consumer.uid === uid) === true
}

function driversOf({ status }: ResourceClaim): readonly string[] {
  return (status?.allocation?.devices?.results ?? []).map(({ driver }) => driver)
}
