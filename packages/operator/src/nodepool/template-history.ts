import { karpenterKinds, type NodePool, ownValue } from '@tenon/api'
import { done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { Caches } from '../state/caches.ts'
import { isUnreadable } from '../state/readable.ts'
import { isSameValue } from '../state/same-value.ts'
import type { ControllerSpec, Enqueue } from '../controller.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { rolloutAnnotations } from '../state/nodepools/rollout-settings.ts'

type Template = NodePool['spec']['template']

export interface FormerTemplate {
  /** When it was replaced; RFC 3339. */
  readonly until: string
  readonly template: Template
}

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: Pick<ClusterState, 'managedPool'>
  readonly clock: Clock
}

const mostKept = 3
/** All annotations of an object together may have 256 KiB. */
const mostLength = 64 * 1024

/** `nodepool.history`: keeps earlier templates of a NodePool in an annotation, for `tenon rollout undo` (ask.md 9). */
export class TemplateHistory implements ControllerSpec {
  readonly name = 'nodepool.history'
  readonly concurrency = { least: 1, most: 10 }
  readonly #deps: Dependencies
  /** Templates that are not stored yet, by NodePool, newest first. */
  readonly #unstored = new Map<string, readonly FormerTemplate[]>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, clock } = this.#deps
    caches.nodePools.onChange((change) => {
      const { name } = change.object.metadata
      if (change.kind === 'deleted') this.#unstored.delete(name)
      if (change.kind !== 'updated' || isUnreadable(change.old) || isUnreadable(change.object)) return
      const { template } = change.old.spec
      if (isSameValue(template, change.object.spec.template)) return
      const former = { until: rfc3339(clock.now()), template }
      this.#unstored.set(name, [former, ...(this.#unstored.get(name) ?? [])])
      enqueue(name)
    })
  }

  async reconcile(name: string): Promise<ReconcileResult> {
    const added = this.#unstored.get(name)
    const pool = this.#deps.state.managedPool(name)
    if (added === undefined || pool === undefined) return done
    const value = textOf([...added, ...formerTemplates(pool)])
    const patch = { metadata: { annotations: { [rolloutAnnotations.history]: value } } }
    const { resourceVersion = '' } = pool.metadata
    try {
      await this.#deps.client.patch(karpenterKinds.nodePool, { name }, patch, { resourceVersion })
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      if (!isKubeError(error, 'notFound')) throw error
    }
    const later = (this.#unstored.get(name) ?? []).filter((each) => !added.includes(each))
    if (later.length > 0) this.#unstored.set(name, later)
    else this.#unstored.delete(name)
    return later.length > 0 ? { kind: 'after', delayMs: 1 } : done
  }
}

/** Earlier templates of a NodePool, newest first, without those that cannot be read. */
export function formerTemplates({ metadata }: Pick<NodePool, 'metadata'>): readonly FormerTemplate[] {
  const text = ownValue(metadata.annotations, rolloutAnnotations.history)
  if (text === undefined) return []
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) ? parsed.filter(isFormer) : []
  } catch {
    return []
  }
}

function isFormer(value: unknown): value is FormerTemplate {
  if (typeof value !== 'object' || value === null) return false
  const { template, until } = value as Partial<Record<keyof FormerTemplate, unknown>>
  return typeof until === 'string' && typeof template === 'object' && template !== null && 'spec' in template
}

/** As many as fit; null if none does. */
function textOf(templates: readonly FormerTemplate[]): string | null {
  for (let kept = Math.min(mostKept, templates.length); kept > 0; kept--) {
    const text = JSON.stringify(templates.slice(0, kept))
    if (text.length <= mostLength) return text
  }
  return null
}
