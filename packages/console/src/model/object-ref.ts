/** Names of objects that have a page of their own (page.md 2). */

/** An object as links name it. */
export interface ObjectRef {
  /** Such as `Node`. */
  readonly kind: string
  /** Only of node classes, whose kinds differ from cloud to cloud. */
  readonly group?: string
  /** Absent for objects without a namespace. */
  readonly namespace?: string
  readonly name: string
}

/** Longer than any name that an API server accepts. */
const mostCharacters = 512

/** The address of the object's page. Names may contain dots and, in a snapshot, anything. */
export function objectPath(ref: ObjectRef): string {
  return `/object?${objectQuery(ref)}`
}

export function objectQuery({ kind, group, namespace, name }: ObjectRef): string {
  return new URLSearchParams({
    kind,
    ...(group !== undefined && { group }),
    ...(namespace !== undefined && { namespace }),
    name,
  }).toString()
}

/** @returns undefined if the query names no object. */
export function objectRefOf(query: URLSearchParams): ObjectRef | undefined {
  const [kind, group, namespace, name] = ['kind', 'group', 'namespace', 'name'].map(
    (each) => query.get(each) ?? '',
  ) as [string, string, string, string]
  if (kind === '' || name === '') return undefined
  if ([kind, group, namespace, name].some(({ length }) => length > mostCharacters)) return undefined
  return { kind, ...(group !== '' && { group }), ...(namespace !== '' && { namespace }), name }
}

/** `Pod shop/web-1`. */
export function objectText({ kind, namespace, name }: ObjectRef): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
