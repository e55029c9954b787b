import type { KubeObject, LabelSelector, PodTemplateSpec, ResourceType } from '@tenon/api'
import { ApiError } from '../../contract.ts'
import type { ControllerContext } from '../context.ts'
import type { Index } from '../loop/object-cache.ts'
import { claimDependents, controllerReference } from './owners.ts'
import { canonicalJson, templateHash } from './template-hash.ts'
import { type ControllerRevision, workloads } from './workloads.ts'

export const revisionHashLabel = 'controller-revision-hash'

/** Owners whose templates are stored as ControllerRevisions. */
export interface RevisionedOwner extends KubeObject {
  readonly spec: {
    readonly selector: LabelSelector
    readonly template: PodTemplateSpec
    readonly revisionHistoryLimit?: number
  }
  readonly status?: { readonly collisionCount?: number }
}

/** The template in the form that `kubectl rollout undo` patches. */
function revisionData(template: PodTemplateSpec): unknown {
  return { spec: { template: { ...template, $patch: 'replace' } } }
}

const texts = new WeakMap<object, string>()

/** A template or revision as text; equal for equal ones, and computed once. */
function textOf(source: object, data: () => unknown): string {
  const text = texts.get(source) ?? canonicalJson(data())
  texts.set(source, text)
  return text
}

/** The template of a revision. */
export function templateOf(revision: ControllerRevision): PodTemplateSpec {
  const data = revision.data as { spec: { template: PodTemplateSpec & { $patch?: string } } }
  const { $patch: _strategy, ...template } = data.spec.template
  return template
}

/**
 * The revisions of `owner`, oldest first; the last one is that of the current template: new, or moved to the end by a
 * rollback.
 */
export function syncRevisions(
  context: ControllerContext,
  index: Index<ControllerRevision>,
  owner: RevisionedOwner,
  ownerType: ResourceType,
): { readonly revisions: ControllerRevision[]; readonly update: ControllerRevision } {
  const { store } = context
  const revisions = claimDependents(store, {
    index,
    type: workloads.controllerRevision,
    owner,
    ownerType,
    selector: owner.spec.selector,
  }).sort((a, b) => a.revision - b.revision || (a.metadata.name < b.metadata.name ? -1 : 1))
  const data = revisionData(owner.spec.template)
  const text = textOf(owner.spec.template, () => data)
  const equal = revisions.findLast((revision) => textOf(revision, () => revision.data) === text)
  const last = revisions.at(-1)
  if (equal !== undefined && equal === last) return { revisions, update: equal }
  const number = (last?.revision ?? 0) + 1
  const others = revisions.filter((revision) => revision !== equal)
  if (equal !== undefined) {
    const moved = store.modify(workloads.controllerRevision, equal, (latest) => ({
      ...latest,
      revision: number,
    }))
    const update = moved ?? equal
    return { revisions: [...others, update], update }
  }
  const update = createRevision(context, owner, ownerType, data, number)
  return { revisions: [...others, update], update }
}

function createRevision(
  context: ControllerContext,
  owner: RevisionedOwner,
  ownerType: ResourceType,
  data: unknown,
  number: number,
): ControllerRevision {
  for (let collisions = owner.status?.collisionCount ?? 0; ; collisions++) {
    const hash = templateHash(owner.spec.template, collisions)
    try {
      return context.store.create(workloads.controllerRevision, {
        apiVersion: 'apps/v1',
        kind: 'ControllerRevision',
        metadata: {
          name: `${owner.metadata.name}-${hash}`,
          namespace: owner.metadata.namespace ?? 'default',
          labels: { ...owner.spec.template.metadata?.labels, [revisionHashLabel]: hash },
          ownerReferences: [controllerReference(owner, ownerType)],
        },
        data,
        revision: number,
      })
    } catch (error) {
      const taken = error instanceof ApiError && error.status.reason === 'AlreadyExists'
      if (!taken || collisions > 16) throw error
    }
  }
}

/** Deletes the oldest revisions that no pod uses, beyond the history limit. */
export function dropRevisions(
  context: ControllerContext,
  owner: RevisionedOwner,
  revisions: readonly ControllerRevision[],
  isUsed: (revision: ControllerRevision) => boolean,
): void {
  const unused = revisions.filter((revision) => !isUsed(revision))
  const excess = Math.max(0, unused.length - (owner.spec.revisionHistoryLimit ?? 10))
  for (const revision of unused.slice(0, excess)) context.store.delete(workloads.controllerRevision, revision)
}
