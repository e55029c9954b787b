import type { JSX } from 'preact'
import { objectPath, type ObjectRef } from '../../model/object-ref.ts'
import { isKnown } from '../state/store.ts'
import { Name } from './name.tsx'

/** The name of an object, which leads to its page; `none` without a name. */
export function ObjectLink({
  kind,
  group,
  namespace,
  name,
  most,
  none = '-',
}: Omit<ObjectRef, 'name'> & {
  readonly name: string | undefined
  /** Longer names are elided. */
  readonly most?: number
  readonly none?: string
}): JSX.Element {
  if (name === undefined || name === '') return <>{none}</>
  const ref = {
    kind,
    name,
    ...(group !== undefined && { group }),
    ...(namespace !== undefined && { namespace }),
  }
  return (
    <a href={objectPath(ref)} title={name}>
      <Name
        name={namespace === undefined ? name : `${namespace}/${name}`}
        {...(most !== undefined && { most })}
      />
    </a>
  )
}

/** A Node or a NodeClaim without one, by the name that both may have. */
export function NodeLink({
  name,
  most,
}: {
  readonly name: string | undefined
  readonly most?: number
}): JSX.Element {
  const kind =
    name !== undefined && !isKnown('Node', name) && isKnown('NodeClaim', name) ? 'NodeClaim' : 'Node'
  return <ObjectLink kind={kind} name={name} {...(most !== undefined && { most })} />
}

/** A pod by its namespace and name; text if it is none. */
export function PodLink({ id, most }: { readonly id: string; readonly most?: number }): JSX.Element {
  const at = id.indexOf('/')
  if (at <= 0) return <Name name={id} />
  return (
    <ObjectLink
      kind="Pod"
      namespace={id.slice(0, at)}
      name={id.slice(at + 1)}
      {...(most !== undefined && { most })}
    />
  )
}

/** Kinds of owners, which rows name in lower case. */
const workloadKinds: ReadonlyMap<string, string> = new Map(
  ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job', 'CronJob', 'ReplicationController'].map(
    (kind) => [kind.toLowerCase(), kind],
  ),
)

/** An owner such as `deployment/web`; text if its kind has no page. */
export function OwnerLink({
  namespace,
  owner,
  most,
}: {
  readonly namespace: string
  readonly owner: string | undefined
  readonly most?: number
}): JSX.Element {
  const at = owner?.indexOf('/') ?? -1
  const kind = workloadKinds.get(owner?.slice(0, at) ?? '')
  const limit = most !== undefined && { most }
  if (owner === undefined || kind === undefined) return <Name name={owner ?? '-'} {...limit} />
  return (
    <a href={objectPath({ kind, namespace, name: owner.slice(at + 1) })} title={owner}>
      <Name name={owner} {...limit} />
    </a>
  )
}

const named =
  /\b(NodePool|NodeClaim|Node|node|Pod|pod|Deployment|StatefulSet|DaemonSet|ReplicaSet|Job) ([a-z0-9](?:[-a-z0-9./]{0,300}[a-z0-9])?)/g

/** A sentence in which names of objects lead to their pages: `NodePool web`, `pod shop/a`. */
export function Sentence({ text }: { readonly text: string }): JSX.Element {
  const parts: (JSX.Element | string)[] = []
  let from = 0
  for (const { 0: found, 1: word = '', 2: name = '', index } of text.matchAll(named)) {
    const ref = refOf(`${word[0]?.toUpperCase() ?? ''}${word.slice(1)}`, name)
    if (ref === undefined) continue
    const end = index + found.length
    parts.push(text.slice(from, end - name.length), <a href={objectPath(ref)}>{name}</a>)
    from = end
  }
  parts.push(text.slice(from))
  return <>{parts}</>
}

/** Words after `node` may be any; only names of nodes lead to a page. */
function refOf(kind: string, name: string): ObjectRef | undefined {
  if (kind === 'Node' || kind === 'NodeClaim' || kind === 'NodePool')
    return isKnown(kind, name) ? { kind, name } : undefined
  const [namespace = '', own, ...more] = name.split('/')
  return own === undefined || own === '' || more.length > 0 ? undefined : { kind, namespace, name: own }
}
