/** What belongs together: class, NodePool, NodeClaim, Node and pods, and back (page.md 2). */
import { labels, type NodePool, ownValue } from '@tenon/api'
import type { Fleet } from './fleet.ts'
import type { ObjectRef } from './object-ref.ts'
import type { PodIndex } from './pods.ts'

/** Objects by what they are to the asked one; an absent one is not known. */
export interface Relations {
  readonly nodeClass?: ObjectRef
  readonly nodePool?: ObjectRef
  readonly nodeClaim?: ObjectRef
  readonly node?: ObjectRef
  /** Of a pod: its ReplicaSet, its Deployment; the closest first. */
  readonly owners?: readonly ObjectRef[]
  /** Of a node class, by name. */
  readonly nodePools?: readonly ObjectRef[]
}

interface Related {
  readonly objects: Pick<Fleet, 'claim' | 'claimOf' | 'node' | 'nodeOf'>
  readonly pools: ReadonlyMap<string, NodePool>
  readonly pods: Pick<PodIndex, 'get'>
}

export function relationsOf(from: Related, ref: ObjectRef): Relations {
  switch (ref.kind) {
    case 'Node':
      return ofNode(from, ref.name)
    case 'NodeClaim':
      return ofClaim(from, ref.name)
    case 'NodePool':
      return ofPool(from, ref.name)
    case 'Pod':
      return ofPod(from, ref)
    default:
      return ref.group === undefined ? {} : ofClass(from, ref)
  }
}

function ofNode({ objects }: Related, name: string): Relations {
  const node = objects.node(name)
  if (node === undefined) return {}
  const claim = objects.claimOf(node)
  const pool = ownValue(node.metadata.labels, labels.nodePool)
  return {
    ...(pool !== undefined && { nodePool: { kind: 'NodePool', name: pool } }),
    ...(claim !== undefined && { nodeClaim: { kind: 'NodeClaim', name: claim.metadata.name } }),
  }
}

function ofClaim({ objects }: Related, name: string): Relations {
  const claim = objects.claim(name)
  if (claim === undefined) return {}
  const pool = ownValue(claim.metadata.labels, labels.nodePool)
  const node = objects.nodeOf(claim)
  return {
    nodeClass: classRef(claim.spec.nodeClassRef),
    ...(pool !== undefined && { nodePool: { kind: 'NodePool', name: pool } }),
    ...(node !== undefined && { node: { kind: 'Node', name: node.metadata.name } }),
  }
}

function ofPool({ pools }: Related, name: string): Relations {
  const pool = pools.get(name)
  return pool === undefined ? {} : { nodeClass: classRef(pool.spec.template.spec.nodeClassRef) }
}

function ofPod({ pods }: Related, { namespace = 'default', name }: ObjectRef): Relations {
  const facts = pods.get(`${namespace}/${name}`)
  if (facts === undefined) return {}
  const { node, owner, replicaSet } = facts
  const owners = [
    ...(replicaSet === undefined ? [] : [{ kind: 'ReplicaSet', namespace, name: replicaSet }]),
    ...(owner.kind === 'Pod' ? [] : [{ ...owner, namespace }]),
  ]
  return { ...(node !== '' && { node: { kind: 'Node', name: node } }), owners }
}

function ofClass({ pools }: Related, { group, kind, name }: ObjectRef): Relations {
  const own = [...pools.values()].filter(({ spec }) => {
    const ref = spec.template.spec.nodeClassRef
    return ref.group === group && ref.kind === kind && ref.name === name
  })
  const nodePools = own.map(({ metadata }) => ({ kind: 'NodePool', name: metadata.name }))
  return { nodePools: nodePools.toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
}

function classRef({ group, kind, name }: NodePool['spec']['template']['spec']['nodeClassRef']): ObjectRef {
  return { kind, group, name }
}
