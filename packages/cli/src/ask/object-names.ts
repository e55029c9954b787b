/** Objects by `KIND/NAME` or `KIND/NAMESPACE/NAME`, as questions name them. */
import type { ObjectName } from '@tenon/ask'
import { ownValue } from '@tenon/api'

/** Kinds that can be changed, by the words for them. */
const kindWords: Readonly<Record<string, { readonly kind: string; readonly isNamespaced: boolean }>> = {
  pod: { kind: 'Pod', isNamespaced: true },
  node: { kind: 'Node', isNamespaced: false },
  nodepool: { kind: 'NodePool', isNamespaced: false },
  nodeclaim: { kind: 'NodeClaim', isNamespaced: false },
  deployment: { kind: 'Deployment', isNamespaced: true },
  replicaset: { kind: 'ReplicaSet', isNamespaced: true },
  statefulset: { kind: 'StatefulSet', isNamespaced: true },
  job: { kind: 'Job', isNamespaced: true },
}

/** The words, for errors. */
export const objectKinds: readonly string[] = Object.keys(kindWords)

/** @returns undefined for what is no such name. */
export function objectNameOf(text: string): ObjectName | undefined {
  const [word = '', ...rest] = text.split('/')
  const known = ownValue(kindWords, word.toLowerCase().replace(/s$/, ''))
  if (known === undefined || rest.length === 0 || rest.includes('')) return undefined
  if (!known.isNamespaced) return rest.length === 1 ? { kind: known.kind, name: rest[0] ?? '' } : undefined
  if (rest.length > 2) return undefined
  const [namespace, name] = rest.length === 2 ? rest : ['default', rest[0]]
  return { kind: known.kind, namespace: namespace ?? '', name: name ?? '' }
}
