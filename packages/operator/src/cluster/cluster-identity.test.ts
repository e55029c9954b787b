import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  karpenterKinds,
  kinds,
  type Lease,
  type Namespace,
  type Node,
  type NodeClaim,
  type ResourceType,
} from '@tenon/api'
import type { EventInput } from '@tenon/kube'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { ClusterIdentity, identityAnnotation } from './cluster-identity.ts'
import { ToldCache } from './observed-cluster.test-support.ts'

const lease = { namespace: 'kube-system', name: 'tenon' }

interface Stand {
  readonly clock: VirtualClock
  readonly told: string[]
  /** What is stored on the lease. */
  readonly annotations: Record<string, string>
  readonly identity: ClusterIdentity
  /** Leads to another cluster from here on. */
  readonly moveTo: (uid: string) => void
}

function stand(options: { readonly stored?: string; readonly isAccepted?: boolean } = {}): Stand {
  const clock = new VirtualClock()
  const told: string[] = []
  const annotations: Record<string, string> =
    options.stored === undefined ? {} : { [identityAnnotation]: options.stored }
  let uid = 'here'
  const namespaces = new ToldCache<Namespace>(kinds.namespace)
  const namespaceNow = (): Namespace => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'kube-system', uid },
  })
  namespaces.put(namespaceNow())
  const leaseNow = (): Lease => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...lease, annotations },
  })
  const identity = new ClusterIdentity({
    client: {
      get: <T>() => Promise.resolve(leaseNow() as T),
      list: <T>() => Promise.resolve([namespaceNow() as T]),
      patch: <T>(_type: ResourceType, _key: unknown, patch: object) => {
        Object.assign(annotations, (patch as Partial<Lease>).metadata?.annotations)
        return Promise.resolve(leaseNow() as T)
      },
    },
    caches: {
      namespaces,
      nodeClaims: new ToldCache<NodeClaim>(karpenterKinds.nodeClaim),
      nodes: new ToldCache<Node>(kinds.node),
    },
    events: { record: ({ message }: EventInput) => void told.push(message) },
    clock,
    logger: silentLogger,
    settings: { lease, isAccepted: options.isAccepted ?? false },
  })
  return {
    clock,
    told,
    annotations,
    identity,
    moveTo: (next) => {
      uid = next
    },
  }
}

test('RPB-43 the first start finds no identity and stores it', async () => {
  const { identity, annotations } = stand()
  assert.ok(await identity.mayRemove())
  assert.equal(annotations[identityAnnotation], 'here')
})

test('RPB-43 a lease of another cluster stops removals, once accepted no longer', async () => {
  const refused = stand({ stored: 'there' })
  assert.equal(await refused.identity.mayRemove(), false)
  assert.match(refused.told[0] ?? '', /cluster there, and this is cluster here; .*--accept-cluster-identity/)
  assert.equal(refused.annotations[identityAnnotation], 'there')
  const accepted = stand({ stored: 'there', isAccepted: true })
  assert.ok(await accepted.identity.mayRemove())
  assert.equal(accepted.annotations[identityAnnotation], 'here')
  const later = stand({ stored: accepted.annotations[identityAnnotation] ?? '' })
  assert.ok(await later.identity.mayRemove(), 'the next start need not be told')
})

test('RPB-43 another cluster behind the same address stops removals, told once a minute, until it is gone', async () => {
  const { clock, identity, moveTo, told } = stand()
  assert.ok(await identity.mayRemove())
  moveTo('there')
  await clock.advance(10_000)
  for (let second = 0; second < 180; second++) {
    assert.equal(await identity.mayRemove(), false)
    await clock.advance(1_000)
  }
  assert.equal(told.length, 3)
  moveTo('here')
  await clock.advance(10_000)
  assert.ok(await identity.mayRemove())
})

test('RPB-43 a sweep of all there is stops where the cluster knows none of it', () => {
  const { identity } = stand()
  assert.match(identity.refusalOfSweep(4, 4) ?? '', /shows no NodeClaim and no Node of the 4 instances/)
  assert.equal(identity.refusalOfSweep(3, 4), undefined)
  assert.equal(identity.refusalOfSweep(0, 0), undefined)
  assert.equal(stand({ isAccepted: true }).identity.refusalOfSweep(4, 4), undefined)
})
