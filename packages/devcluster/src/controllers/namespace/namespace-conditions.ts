import type { WorkloadCondition } from '../objects/workloads.ts'

/** The remaining content of a namespace. */
export interface Remaining {
  /** Objects by resource, such as `pods.` or `deployments.apps`. */
  readonly objects: ReadonlyMap<string, number>
  /** Objects by finalizer. */
  readonly finalizers: ReadonlyMap<string, number>
  readonly failures: readonly string[]
}

/** The conditions of a namespace being deleted. */
export function deletionConditions(remaining: Remaining): WorkloadCondition[] {
  const { failures } = remaining
  const objects = listed(remaining.objects, (name, count) => `${name} has ${count} resource instances`)
  const finalizers = listed(remaining.finalizers, (name, count) => `${name} in ${count} resource instances`)
  return [
    unmet(
      'NamespaceDeletionDiscoveryFailure',
      'ResourcesDiscovered',
      'All resources successfully discovered',
    ),
    unmet(
      'NamespaceDeletionGroupVersionParsingFailure',
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ),
    failures.length > 0
      ? met(
          'NamespaceDeletionContentFailure',
          'ContentDeletionFailed',
          `Failed to delete all resource types, ${failures.length} remaining: ${failures.join(', ')}`,
        )
      : unmet(
          'NamespaceDeletionContentFailure',
          'ContentDeleted',
          'All content successfully deleted, may be waiting on finalization',
        ),
    objects === ''
      ? unmet('NamespaceContentRemaining', 'ContentRemoved', 'All content successfully removed')
      : met('NamespaceContentRemaining', 'SomeResourcesRemain', `Some resources are remaining: ${objects}`),
    finalizers === ''
      ? unmet(
          'NamespaceFinalizersRemaining',
          'ContentHasNoFinalizers',
          'All content-preserving finalizers finished',
        )
      : met(
          'NamespaceFinalizersRemaining',
          'SomeFinalizersRemain',
          `Some content in the namespace has finalizers remaining: ${finalizers}`,
        ),
  ]
}

function met(type: string, reason: string, message: string): WorkloadCondition {
  return { type, status: 'True', reason, message }
}

function unmet(type: string, reason: string, message: string): WorkloadCondition {
  return { type, status: 'False', reason, message }
}

function listed(
  counts: ReadonlyMap<string, number>,
  render: (name: string, count: number) => string,
): string {
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => render(name, count))
    .join(', ')
}
