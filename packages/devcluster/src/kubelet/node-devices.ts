/** The drivers of one node: they publish its devices once it is Ready, and prepare those of pods that start. */
import {
  kinds,
  type KubeObject,
  type Pod,
  type ResourceClaim,
  type ResourceSlice,
  type ResourceSliceTemplate,
} from '@tenon/api'
import type { KubeletSpec } from '../contract.ts'
import { attempt, type KubeletContext } from './kubelet-context.ts'
import { ownerOf } from './node-object.ts'
import { draw } from './settings.ts'

/** The API server takes no slice with more. */
const devicesPerSlice = 128

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

  /** The node is Ready: the drivers start. @param delayMs until they publish. */
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

  /** Publishes what is missing, such as after the Node was deleted and registered again. */
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

  /** Whether every claim of the pod has devices that are reserved for it and whose drivers run here. */
  isReadyFor(pod: Pod): boolean {
    const references = pod.spec.resourceClaims ?? []
    if (references.length === 0) return true
    const { api } = this.#context
    const drivers = new Set(
      api
        .list(kinds.resourceSlice)
        .filter(({ spec }) => (spec.nodeName ?? this.#nodeName) === this.#nodeName)
        .map(({ spec }) => spec.driver),
    )
    const { namespace, uid } = pod.metadata
    return references.every(({ name, resourceClaimName }) => {
      const made = pod.status?.resourceClaimStatuses?.find((each) => each.name === name)
      const claimName = resourceClaimName ?? made?.resourceClaimName
      if (claimName === undefined) return made !== undefined
      const claim = api.get(kinds.resourceClaim, namespace, claimName)
      return (
        claim !== undefined && isFor(claim, uid) && driversOf(claim).every((driver) => drivers.has(driver))
      )
    })
  }
}

function isFor({ status }: ResourceClaim, uid: string | undefined): boolean {
  return status?.reservedFor?.some((consumer) => consumer.uid === uid) === true
}

function driversOf({ status }: ResourceClaim): readonly string[] {
  return (status?.allocation?.devices?.results ?? []).map(({ driver }) => driver)
}

/** Slices with the devices of the templates: one pool for each driver and pool name. */
function slicesOf(templates: readonly ResourceSliceTemplate[], node: KubeObject): readonly ResourceSlice[] {
  const nodeName = node.metadata.name
  const pools = Map.groupBy(templates, ({ driver, pool }) => `${driver}\n${pool}`)
  return [...pools.values()].flatMap((members) => {
    const { driver, pool } = members[0] ?? { driver: '', pool: '' }
    const devices = members.flatMap((member) => member.devices)
    const counters = members.flatMap(({ sharedCounters = [] }) => sharedCounters)
    const chunks = Array.from({ length: Math.ceil(devices.length / devicesPerSlice) }, (_, at) => ({
      devices: devices.slice(at * devicesPerSlice, (at + 1) * devicesPerSlice),
    }))
    const parts = [...(counters.length > 0 ? [{ sharedCounters: counters }] : []), ...chunks]
    return parts.map(
      (part, at): ResourceSlice => ({
        apiVersion: 'resource.k8s.io/v1',
        kind: 'ResourceSlice',
        metadata: {
          name: [nodeName, driver, pool, String(at)].join('-').replace(/[^a-z0-9.-]/g, '-'),
          ownerReferences: [{ ...ownerOf(node), controller: true }],
        },
        spec: {
          driver,
          pool: { name: `${nodeName}/${pool}`, generation: 1, resourceSliceCount: parts.length },
          nodeName,
          ...part,
        },
      }),
    )
  })
}
