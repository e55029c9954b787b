/** Which MachineDeployments belong to a node class (cluster-api.md 4). */
import { type LabelSelector, matchesSelector, ownValue, qualifiedNameProblem } from '@tenon/api'
import { compareTexts } from '../hub/keys.ts'
import type { HubScope } from '../hub/hub.ts'
import type { ClusterApiNames } from '../names.ts'
import type { ClusterAPINodeClass } from '../node-class.ts'
import type { MachineDeployment } from '../objects.ts'

/** Maximum Clusters in a message. */
const mostNamed = 3

/** The members on a hub, or why there are none. */
export type Membership =
  | { readonly kind: 'members'; readonly deployments: readonly MachineDeployment[] }
  /** A clause without a full stop. */
  | { readonly kind: 'refused'; readonly because: string }

/**
 * MachineDeployments in the scope with the member label. Its value must be empty, as others may use the label with a
 * value. Members of several Clusters are refused: Machines would join the wrong one.
 */
export function membersOf(
  deployments: readonly MachineDeployment[],
  { member }: Pick<ClusterApiNames, 'member'>,
  scope: HubScope,
): Membership {
  const members = deployments.filter(
    ({ metadata, spec }) =>
      ownValue(metadata.labels, member) === '' &&
      (scope.namespace === undefined || metadata.namespace === scope.namespace) &&
      (scope.clusterName === undefined || spec?.clusterName === scope.clusterName),
  )
  const clusters = [...new Set(members.map(({ spec }) => spec?.clusterName ?? ''))].toSorted(compareTexts)
  if (scope.clusterName !== undefined || clusters.length <= 1)
    return { kind: 'members', deployments: members }
  const named = clusters.slice(0, mostNamed).join(', ')
  const rest = clusters.length > mostNamed ? ` and ${clusters.length - mostNamed} more` : ''
  return {
    kind: 'refused',
    because: `MachineDeployments with label ${member} belong to several Clusters (${named}${rest}); set CLUSTER_API_CLUSTER_NAME to the one that these nodes join`,
  }
}

/** Whether a node class selects a member; without a selector it selects all. */
export function isSelected({ spec }: ClusterAPINodeClass, { metadata }: MachineDeployment): boolean {
  const selector = spec?.scalableResourceSelector
  return selector === undefined || selector === null || matchesSelector(selector, metadata.labels)
}

/** A problem of a selector, with the field below it. */
export interface SelectorProblem {
  readonly field: string
  readonly message: string
  readonly fix: string
}

/** Operators, and whether they have values. */
const operators: ReadonlyMap<unknown, boolean> = new Map([
  ['In', true],
  ['NotIn', true],
  ['Exists', false],
  ['DoesNotExist', false],
])

/** Why a selector is invalid; empty if it is valid. */
export function selectorProblems(selector: LabelSelector | undefined): readonly SelectorProblem[] {
  const byLabels = Object.keys(selector?.matchLabels ?? {}).flatMap((key) =>
    keyProblems(key, `matchLabels[${key}]`),
  )
  const byExpression = (selector?.matchExpressions ?? []).flatMap(({ key, operator, values = [] }, index) => {
    const field = `matchExpressions[${index}]`
    const hasValues = operators.get(operator)
    if (hasValues === undefined)
      return [
        {
          field: `${field}.operator`,
          message: `operator ${JSON.stringify(operator)} is not known`,
          fix: 'write In, NotIn, Exists or DoesNotExist',
        },
      ]
    if (hasValues === values.length > 0) return keyProblems(key, `${field}.key`)
    const fix = hasValues ? 'give it at least one value' : 'leave values out'
    return [{ field: `${field}.values`, message: `operator ${operator} has ${values.length} values`, fix }]
  })
  return [...byLabels, ...byExpression]
}

function keyProblems(key: string, field: string): readonly SelectorProblem[] {
  const message = qualifiedNameProblem(key)
  return message === undefined ? [] : [{ field, message, fix: 'write the key of a label' }]
}
