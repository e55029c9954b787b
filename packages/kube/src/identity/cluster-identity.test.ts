import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Namespace, ResourceType } from '@tenon/api'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { type EventInput, KubeError } from '../contract.ts'
import { ClusterIdentity, identityAnnotation } from './cluster-identity.ts'

const lease = { namespace: 'kube-system', name: 'tenon' }

interface Stand {
  readonly clock: VirtualClock
  readonly told: string[]
  /** How the lease was written. */
  readonly written: readonly string[]
  /** What is stored on the lease. */
  readonly annotations: Record<string, string>
  readonly identity: ClusterIdentity
  /** Leads to another cluster from here on. */
  readonly moveTo: (uid: string) => void
  /** What is refused from here on, and with what. */
  readonly refuse: (what: 'namespaces' | 'lease' | 'ConfigMap', error: KubeError | undefined) => void
}

function stand(
  options: {
    readonly stored?: string
    readonly isAccepted?: boolean
    readonly writes?: 'patch' | 'update'
  } = {},
): Stand {
  const clock = new VirtualClock()
  const told: string[] = []
  const written: string[] = []
  const annotations: Record<string, string> =
    options.stored === undefined ? {} : { [identityAnnotation]: options.stored }
  let uid = 'here'
  const namespaceNow = (): Namespace => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'kube-system', uid },
  })
  const leaseNow = (): Lease => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...lease, annotations },
  })
  const rootCaNow = () => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'kube-system', name: 'kube-root-ca.crt', uid: `ca-${uid}` },
  })
  const errors = new Map<string, KubeError>([['ConfigMap', new KubeError('forbidden', 403, 'no ConfigMap')]])
  const answered = <T>(what: string, answer: T): Promise<T> => {
    const error = errors.get(what)
    return error === undefined ? Promise.resolve(answer) : Promise.reject(error)
  }
  const identity = new ClusterIdentity({
    client: {
      get: <T>({ kind }: ResourceType) =>
        kind === 'Lease' ? answered('lease', leaseNow() as T) : answered(kind, rootCaNow() as T),
      list: <T>() => answered('namespaces', [namespaceNow() as T]),
      patch: <T>(_type: ResourceType, _key: unknown, patch: object) => {
        Object.assign(annotations, (patch as Partial<Lease>).metadata?.annotations)
        written.push('patch')
        return Promise.resolve(leaseNow() as T)
      },
      update: <T>(_type: ResourceType, object: T) => {
        Object.assign(annotations, (object as Lease).metadata.annotations)
        written.push('update')
        return Promise.resolve(object)
      },
    },
    events: { record: ({ message }: EventInput) => void told.push(message) },
    clock,
    logger: silentLogger,
    settings: { lease, isAccepted: options.isAccepted ?? false, writes: options.writes ?? 'patch' },
  })
  return {
    clock,
    told,
    written,
    annotations,
    identity,
    moveTo: (next) => {
      uid = next
    },
    refuse: (what, error) => {
      if (error === undefined) errors.delete(what)
      else errors.set(what, error)
    },
  }
}

test('RPB-43 the first start finds no identity and stores it', async () => {
  for (const writes of ['patch', 'update'] as const) {
    const { identity, annotations, written } = stand({ writes })
    assert.ok(await identity.mayRemove())
    assert.equal(annotations[identityAnnotation], 'here')
    assert.deepEqual(written, [writes])
  }
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

for (const [what, right] of [
  ['namespaces', 'list namespaces'],
  ['lease', 'get Lease kube-system/tenon'],
] as const)
  test(`RPB-43 before the identity was read once nothing is removed; the right that lacks is told: ${right}`, async () => {
    const { clock, identity, refuse, told } = stand()
    assert.match(identity.refusalOfSweep(1, 4, () => true) ?? '', /has not been read yet/)
    assert.deepEqual(told, [])
    refuse(what, new KubeError('forbidden', 403, `${what} is forbidden: User "x" may not`))
    for (let second = 0; second < 120; second++) {
      assert.equal(await identity.mayRemove(), false)
      await clock.advance(1_000)
    }
    assert.equal(told.length, 2)
    assert.match(told[0] ?? '', new RegExp(`User "x" may not.*grant the right to ${right}`))
    assert.match(identity.refusalOfSweep(1, 4, () => true) ?? '', new RegExp(right))
    refuse(what, undefined)
    await clock.advance(10_000)
    assert.ok(await identity.mayRemove())
    refuse(what, new KubeError('forbidden', 403, 'no'))
    await clock.advance(10_000)
    assert.ok(await identity.mayRemove(), 'what was read once holds')
  })

test('RPB-43 without the right to list namespaces, a ConfigMap of every cluster tells the identity', async () => {
  const { identity, refuse, annotations, clock, moveTo, told } = stand()
  refuse('namespaces', new KubeError('forbidden', 403, 'no namespaces'))
  refuse('ConfigMap', undefined)
  assert.ok(await identity.mayRemove())
  assert.equal(annotations[identityAnnotation], 'configmap/ca-here')
  refuse('namespaces', undefined)
  await clock.advance(10_000)
  assert.ok(await identity.mayRemove(), 'a right that comes later changes nothing')
  moveTo('there')
  await clock.advance(10_000)
  assert.equal(await identity.mayRemove(), false)
  assert.match(told[0] ?? '', /another cluster \(configmap\/ca-there instead of configmap\/ca-here\)/)
})

test('RPB-43 what was stored with other rights is replaced, what was stored with these is compared', async () => {
  const replacing = stand({ stored: 'configmap/ca-here' })
  assert.ok(await replacing.identity.mayRemove())
  assert.equal(replacing.annotations[identityAnnotation], 'here')
  const comparing = stand({ stored: 'configmap/ca-there' })
  comparing.refuse('namespaces', new KubeError('forbidden', 403, 'no namespaces'))
  comparing.refuse('ConfigMap', undefined)
  assert.equal(await comparing.identity.mayRemove(), false)
})

test('RPB-43 whoever accepts the cluster needs no right to read its identity', async () => {
  const { identity, refuse } = stand({ isAccepted: true })
  refuse('namespaces', new KubeError('forbidden', 403, 'no'))
  assert.ok(await identity.mayRemove())
})

test('RPB-43 a server that does not answer at first is asked again', async () => {
  const { clock, identity, refuse, told } = stand()
  refuse('namespaces', new KubeError('transport', 0, 'connection refused'))
  assert.equal(await identity.mayRemove(), false)
  assert.match(told[0] ?? '', /connection refused.*read again within a minute/)
  refuse('namespaces', undefined)
  await clock.advance(10_000)
  assert.ok(await identity.mayRemove())
})

test('RPB-43 a sweep of all there is stops where the cluster knows none of it', async () => {
  const { identity } = stand()
  await identity.mayRemove()
  assert.match(
    identity.refusalOfSweep(4, 4, () => false) ?? '',
    /shows no NodeClaim and no Node of the 4 instances/,
  )
  assert.equal(
    identity.refusalOfSweep(4, 4, () => true),
    undefined,
  )
  assert.equal(
    identity.refusalOfSweep(3, 4, () => false),
    undefined,
  )
  assert.equal(
    identity.refusalOfSweep(0, 0, () => false),
    undefined,
  )
  assert.equal(
    stand({ isAccepted: true }).identity.refusalOfSweep(4, 4, () => false),
    undefined,
  )
})
