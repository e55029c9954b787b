import { createHash } from 'node:crypto'
import { kinds, type PersistentVolume, type Pod, type VolumeAttachment } from '@tenon/api'
import { podFacts } from '@tenon/filters'
import { outOfServiceTaint } from '../controllers/node-lifecycle/node-taints.ts'
import { attempt, type KubeletContext } from './kubelet-context.ts'
import { draw } from './settings.ts'

/** A CSI volume on a node. */
interface Attachment {
  readonly name: string
  readonly nodeName: string
  readonly volumeName: string
  readonly driver: string
  /** As in `node.status`: `kubernetes.io/csi/DRIVER^HANDLE`. */
  readonly uniqueName: string
  readonly shared: boolean
}

type AttachmentState =
  | { readonly kind: 'attaching'; readonly doneAt: number }
  | { readonly kind: 'attached' }
  | { readonly kind: 'detaching'; readonly doneAt: number }

const stepMs = 250

/**
 * Attaches CSI volumes for pods and detaches them afterwards, like the attach-detach controller and the CSI attacher
 * together: VolumeAttachment objects and the lists in the Node's status.
 */
export class AttachDetach {
  readonly #context: KubeletContext
  readonly #isRunning: (nodeName: string) => boolean
  readonly #pods = new Map<string, Pod>()
  readonly #known = new Map<string, { readonly attachment: Attachment; state: AttachmentState }>()
  #armed = false

  /** @param isRunning whether a node's kubelet runs, and so can unmount a volume. */
  constructor(context: KubeletContext, isRunning: (nodeName: string) => boolean) {
    this.#context = context
    this.#isRunning = isRunning
  }

  /** Call it for new, changed and removed pods; `undefined` for a pod that is gone or has ended. */
  observePod(uid: string, pod: Pod | undefined): void {
    const before = this.#pods.get(uid)
    if (pod === undefined) this.#pods.delete(uid)
    else if (hasClaims(pod)) this.#pods.set(uid, pod)
    if (before !== this.#pods.get(uid)) this.#arm()
  }

  /** Whether all CSI volumes of a pod are attached to its node. */
  ready(pod: Pod): boolean {
    if (!hasClaims(pod)) return true
    const wanted = this.#attachmentsOf(pod)
    return wanted !== undefined && wanted.every((one) => this.#known.get(one.name)?.state.kind === 'attached')
  }

  #arm(): void {
    if (this.#armed) return
    this.#armed = true
    this.#context.timers.after(stepMs, () => {
      this.#armed = false
      this.#step()
    })
  }

  /** One pass: starts and finishes attachments and detachments. Repeats while any is in progress. */
  #step(): void {
    const wanted = this.#wanted()
    for (const attachment of wanted.values()) this.#attach(attachment)
    for (const { attachment, state } of this.#known.values()) {
      if (!wanted.has(attachment.name) && state.kind !== 'detaching') this.#beginDetach(attachment)
    }
    const changed = new Set<string>()
    const now = this.#context.clock.monotonic()
    for (const [name, known] of this.#known) {
      if (known.state.kind === 'attached') continue
      if (known.state.doneAt > now && !this.#isLost(known.attachment, known.state)) continue
      if (known.state.kind === 'attaching') this.#finishAttach(name)
      else this.#finishDetach(name)
      changed.add(known.attachment.nodeName)
    }
    for (const nodeName of changed) this.#reportNode(nodeName)
    const moving = [...this.#known.values()].some((one) => one.state.kind !== 'attached')
    const missing = [...wanted.keys()].some((name) => !this.#known.has(name))
    const unresolved = [...this.#pods.values()].some((pod) => this.#attachmentsOf(pod) === undefined)
    if (moving || missing || unresolved) this.#arm()
  }

  #wanted(): Map<string, Attachment> {
    const wanted = new Map<string, Attachment>()
    for (const pod of this.#pods.values()) {
      for (const one of this.#attachmentsOf(pod) ?? []) wanted.set(one.name, one)
    }
    return wanted
  }

  #attach(attachment: Attachment): void {
    const { api, clock, logger, random, settings } = this.#context
    const known = this.#known.get(attachment.name)
    if (known !== undefined) {
      if (known.state.kind === 'detaching') known.state = { kind: 'attached' }
      return
    }
    const elsewhere = [...this.#known.values()].some(
      (one) => one.attachment.uniqueName === attachment.uniqueName,
    )
    if (elsewhere && !attachment.shared) return
    const existing = api.get(kinds.volumeAttachment, undefined, attachment.name)
    const created =
      existing ??
      attempt(logger, 'volume attachment could not be created', () =>
        api.create(kinds.volumeAttachment, volumeAttachment(attachment)),
      )
    if (created === undefined) return
    const doneAt = clock.monotonic() + draw(random, settings.attachDelay)
    this.#known.set(attachment.name, { attachment, state: { kind: 'attaching', doneAt } })
  }

  /** The kubelet of a silent node may still write to the volume, so detaching waits long. */
  #beginDetach(attachment: Attachment): void {
    const { clock, random, settings } = this.#context
    const delay = this.#isRunning(attachment.nodeName)
      ? draw(random, settings.detachDelay)
      : settings.forceDetachMs
    const doneAt = clock.monotonic() + delay
    this.#known.set(attachment.name, { attachment, state: { kind: 'detaching', doneAt } })
  }

  /** Whoever taints a node as out of service states that nothing there writes to volumes any more. */
  #isLost({ nodeName }: Attachment, { kind }: AttachmentState): boolean {
    if (kind !== 'detaching') return false
    const node = this.#context.api.get(kinds.node, undefined, nodeName)
    return node?.spec?.taints?.some(({ key }) => key === outOfServiceTaint) === true
  }

  #finishAttach(name: string): void {
    const known = this.#known.get(name)
    if (known === undefined) return
    known.state = { kind: 'attached' }
    attempt(this.#context.logger, 'volume attachment could not be reported', () =>
      this.#context.api.patch(
        kinds.volumeAttachment,
        undefined,
        name,
        { status: { attached: true } },
        'status',
      ),
    )
  }

  #finishDetach(name: string): void {
    this.#known.delete(name)
    attempt(this.#context.logger, 'volume attachment could not be deleted', () =>
      this.#context.api.delete(kinds.volumeAttachment, undefined, name),
    )
  }

  #reportNode(nodeName: string): void {
    const { api, logger } = this.#context
    if (api.get(kinds.node, undefined, nodeName) === undefined) return
    const here = [...this.#known.values()].filter(
      (one) => one.attachment.nodeName === nodeName && one.state.kind !== 'attaching',
    )
    const names = here.map((one) => one.attachment.uniqueName).toSorted()
    const status = {
      volumesAttached: names.map((name) => ({ name, devicePath: '' })),
      volumesInUse: names,
    }
    attempt(logger, 'attached volumes could not be reported', () =>
      api.patch(kinds.node, undefined, nodeName, { status }, 'status'),
    )
  }

  /** The CSI volumes of a pod; undefined while one of its claims is not bound. */
  #attachmentsOf(pod: Pod): Attachment[] | undefined {
    const { api, table } = this.#context
    const nodeName = pod.spec.nodeName ?? ''
    const attachments: Attachment[] = []
    for (const { name } of podFacts(pod, table).claims) {
      const claim = api.get(kinds.persistentVolumeClaim, pod.metadata.namespace, name)
      const volumeName = claim?.spec.volumeName ?? ''
      if (volumeName === '') return undefined
      const volume = api.get(kinds.persistentVolume, undefined, volumeName)
      if (volume === undefined) return undefined
      if (volume.spec.csi !== undefined) attachments.push(attachmentOf(volume, nodeName))
    }
    return attachments
  }
}

function hasClaims(pod: Pod): boolean {
  return (pod.spec.volumes ?? []).some(
    (one) => one.persistentVolumeClaim !== undefined || one.ephemeral !== undefined,
  )
}

function attachmentOf(volume: PersistentVolume, nodeName: string): Attachment {
  const spec = volume.spec
  const driver = spec.csi?.driver ?? ''
  const handle = spec.csi?.volumeHandle ?? volume.metadata.name
  const hash = createHash('sha256').update(`${handle}${driver}${nodeName}`).digest('hex')
  return {
    name: `csi-${hash}`,
    nodeName,
    volumeName: volume.metadata.name,
    driver,
    uniqueName: `kubernetes.io/csi/${driver}^${handle}`,
    shared: (spec.accessModes ?? []).some((mode) => mode.endsWith('Many')),
  }
}

function volumeAttachment(attachment: Attachment): VolumeAttachment {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: attachment.name },
    spec: {
      attacher: attachment.driver,
      nodeName: attachment.nodeName,
      source: { persistentVolumeName: attachment.volumeName },
    },
  }
}
