/** Compares the rights that a chart's roles grant with the requests of the controller. */
import type { AuditEvent } from '../audit.ts'

/** A rendered Role or ClusterRole. */
export interface RoleObject {
  readonly kind?: string
  readonly metadata?: { readonly name?: string; readonly namespace?: string }
  readonly rules?: readonly {
    readonly apiGroups: readonly string[]
    readonly resources: readonly string[]
    readonly verbs: readonly string[]
    readonly resourceNames?: readonly string[]
  }[]
}

/** One verb on one resource. */
export interface Right {
  /**
   * Such as `patch karpenter.sh/nodeclaims/status`; with ` in NAMESPACE` appended if it is limited to a
   * namespace.
   */
  readonly text: string
  readonly verb: string
  readonly group: string
  /** With the subresource, as in `pods/eviction`. */
  readonly resource: string
  readonly namespace?: string
  readonly names?: readonly string[]
}

export interface RightsReport {
  /** Granted, but never used. */
  readonly unused: readonly string[]
  /** Used, but not granted. */
  readonly missing: readonly string[]
}

/** Every verb that the roles grant to the controller; roles for people are omitted. */
export function grantedRights(objects: readonly RoleObject[]): readonly Right[] {
  const roles = objects.filter(
    ({ kind, metadata }) =>
      kind === 'Role' || (kind === 'ClusterRole' && !(metadata?.name ?? '').endsWith('-admin')),
  )
  return roles.flatMap(({ kind, metadata, rules = [] }) =>
    rules.flatMap(({ apiGroups, resources, verbs, resourceNames }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.map((verb) => ({
            text: rightText(verb, group, resource, kind === 'Role' ? metadata?.namespace : undefined),
            verb,
            group,
            resource,
            ...(kind === 'Role' && { namespace: metadata?.namespace ?? '' }),
            ...(resourceNames && { names: resourceNames }),
          })),
        ),
      ),
    ),
  )
}

/** Compares requests with rights. What everybody may do, such as reading the version, is ignored. */
export function rightsReport(rights: readonly Right[], events: readonly AuditEvent[]): RightsReport {
  const used = new Set<Right>()
  const missing = new Set<string>()
  for (const event of events) {
    if (event.objectRef?.resource === undefined) continue
    const matching = rights.filter((right) => covers(right, event))
    for (const right of matching) used.add(right)
    if (matching.length === 0) missing.add(askedFor(event))
  }
  const unused = rights.filter((right) => !used.has(right)).map(({ text }) => text)
  return { unused: [...new Set(unused)].toSorted(), missing: [...missing].toSorted() }
}

function covers({ verb, group, resource, namespace, names }: Right, event: AuditEvent): boolean {
  const { objectRef = {} } = event
  return (
    event.verb === verb &&
    (objectRef.apiGroup ?? '') === group &&
    resourceOf(event) === resource &&
    (namespace === undefined || objectRef.namespace === namespace) &&
    (names === undefined || names.includes(objectRef.name ?? ''))
  )
}

function resourceOf({ objectRef }: AuditEvent): string {
  const { resource = '', subresource } = objectRef ?? {}
  return subresource === undefined ? resource : `${resource}/${subresource}`
}

function askedFor(event: AuditEvent): string {
  return rightText(event.verb, event.objectRef?.apiGroup ?? '', resourceOf(event), event.objectRef?.namespace)
}

function rightText(verb: string, group: string, resource: string, namespace: string | undefined): string {
  return `${verb} ${group === '' ? '' : `${group}/`}${resource}${namespace === undefined ? '' : ` in ${namespace}`}`
}
