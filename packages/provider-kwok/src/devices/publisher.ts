/** Simulates DRA drivers: publishes the devices of each node's instance type as ResourceSlices. */
import { type InstanceType, kinds, labels, type Node, type ResourceSlice, slicesOf } from '@tenon/api'
import { isKubeError, type KubeClient, type ReadFields } from '@tenon/kube'
import type { Runtime } from '@tenon/runtime'
import { providerIdPrefix } from '../launch.ts'
import { sliceChanges } from './publishing.ts'

const periodMs = 5_000
/** Marks slices of this provider. */
const managedLabel = 'karpenter.kwok.sh/simulated-driver'

const nodeFields: ReadFields = {
  members: {
    metadata: { members: { managedFields: false }, others: true },
    spec: { members: { providerID: true }, others: false },
  },
  others: false,
}

/** What the simulated drivers need. */
export interface PublisherDependencies {
  readonly client: Pick<KubeClient, 'create' | 'delete' | 'list'>
  readonly runtime: Runtime
  readonly types: readonly InstanceType[]
  /** How long after a Node of this node class its devices are published, in milliseconds. */
  readonly delayMsOf: (nodeClass: string) => number
}

/** Level-based: after a crash it continues with what it finds. */
export class DevicePublisher {
  readonly #deps: PublisherDependencies
  readonly #types: ReadonlyMap<string, InstanceType>

  constructor(deps: PublisherDependencies) {
    this.#deps = deps
    this.#types = new Map(deps.types.map((type) => [type.name, type]))
  }

  /** Publishes until the signal aborts; returns at once if no type has devices. */
  async run(signal: AbortSignal): Promise<void> {
    if (!this.#deps.types.some(({ resourceSliceTemplates = [] }) => resourceSliceTemplates.length > 0)) return
    const { clock, logger } = this.#deps.runtime
    while (!signal.aborted) {
      try {
        await this.publish(signal)
        await clock.sleep(periodMs, signal)
      } catch (error) {
        if (signal.aborted) return
        logger.warn('devices of simulated nodes could not be published; they are tried again', { error })
        await clock.sleep(periodMs, signal).catch(() => undefined)
      }
    }
  }

  /** One pass over all nodes. */
  async publish(signal: AbortSignal): Promise<void> {
    const { client } = this.#deps
    const nodes = await client.list(kinds.node, { fields: nodeFields, signal })
    const slices = await client.list(kinds.resourceSlice, {
      labelSelector: { matchLabels: { [managedLabel]: 'true' } },
      signal,
    })
    const published = Map.groupBy(slices, ({ spec }) => spec.nodeName ?? '')
    for (const node of nodes) {
      const own = published.get(node.metadata.name) ?? []
      const wanted = this.#wantedOn(node)
      if (wanted === undefined) continue
      const { gone, made } = sliceChanges(wanted, own)
      for (const { metadata } of gone)
        await this.#ignoring('notFound', () => client.delete(kinds.resourceSlice, metadata))
      for (const slice of made)
        await this.#ignoring('alreadyExists', () => client.create(kinds.resourceSlice, slice))
    }
  }

  /** Undefined if the node is not ours, or its slices are not due yet. */
  #wantedOn(node: Node): readonly ResourceSlice[] | undefined {
    const { metadata, spec } = node
    if (spec?.providerID?.startsWith(providerIdPrefix) !== true) return undefined
    if (metadata.deletionTimestamp !== undefined) return undefined
    const nodeLabels = metadata.labels ?? {}
    const templates = this.#types.get(nodeLabels[labels.instanceType] ?? '')?.resourceSliceTemplates ?? []
    const delayMs = this.#deps.delayMsOf(nodeLabels['karpenter.kwok.sh/kwoknodeclass'] ?? '')
    const ageMs = this.#deps.runtime.clock.now() - Date.parse(metadata.creationTimestamp ?? '')
    if (ageMs < delayMs) return undefined
    return slicesOf(templates, node).map((slice) => ({
      ...slice,
      metadata: { ...slice.metadata, labels: { [managedLabel]: 'true' } },
    }))
  }

  async #ignoring(kind: 'alreadyExists' | 'notFound', write: () => Promise<unknown>): Promise<void> {
    try {
      await write()
    } catch (error) {
      if (!isKubeError(error, kind)) throw error
    }
  }
}
