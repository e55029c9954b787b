/** Parses `KIND/NAME` and `KIND/NAMESPACE/NAME`. */
import type { ObjectName } from '@tenon/ask'
import { ownValue } from '@tenon/api'
import { KubectlError } from '../errors.ts'

interface ChangedKind {
  readonly kind: string
  readonly isNamespaced: boolean
  /** The resource's name in errors of the API server. */
  readonly resource: string
}

/** Kinds that can be changed, by their names on the command line. */
const kindWords: Readonly<Record<string, ChangedKind>> = {
  pod: { kind: 'Pod', isNamespaced: true, resource: 'pods' },
  node: { kind: 'Node', isNamespaced: false, resource: 'nodes' },
  nodepool: { kind: 'NodePool', isNamespaced: false, resource: 'nodepools.karpenter.sh' },
  nodeclaim: { kind: 'NodeClaim', isNamespaced: false, resource: 'nodeclaims.karpenter.sh' },
  deployment: { kind: 'Deployment', isNamespaced: true, resource: 'deployments.apps' },
  replicaset: { kind: 'ReplicaSet', isNamespaced: true, resource: 'replicasets.apps' },
  statefulset: { kind: 'StatefulSet', isNamespaced: true, resource: 'statefulsets.apps' },
  job: { kind: 'Job', isNamespaced: true, resource: 'jobs.batch' },
}

/** The names, for errors. */
export const objectKinds: readonly string[] = Object.keys(kindWords)

/**
 * @param current the namespace of an object that is named without one.
 * @returns undefined if the text is not such a name.
 */
export function objectNameOf(text: string, current = 'default'): ObjectName | undefined {
  const [word = '', ...rest] = text.split('/')
  const known = ownValue(kindWords, word.toLowerCase().replace(/s$/, ''))
  if (known === undefined || rest.length === 0 || rest.includes('')) return undefined
  if (!known.isNamespaced) return rest.length === 1 ? { kind: known.kind, name: rest[0] ?? '' } : undefined
  if (rest.length > 2) return undefined
  const [namespace, name] = rest.length === 2 ? rest : [current, rest[0]]
  return { kind: known.kind, namespace: namespace ?? '', name: name ?? '' }
}

/** The error for an object that does not exist, in the words of kubectl. */
export function objectNotFound({ kind, name }: ObjectName): KubectlError {
  const known = Object.values(kindWords).find((each) => each.kind === kind)
  return new KubectlError(`Error from server (NotFound): ${known?.resource ?? kind} "${name}" not found`)
}
