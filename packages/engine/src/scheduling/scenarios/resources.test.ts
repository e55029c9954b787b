/** What pods take and what types hold (scheduling.md 5, 7.2). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Container,
  type InstanceType,
  type Pod,
  type PodSpec,
  parseResources,
  type Resources,
} from '@tenon/api'
import {
  aDaemon,
  aNode,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  aType,
  failureTexts,
  placedOn,
  times,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

function aContainer(cpu: string, rest: Partial<Container> = {}): Container {
  return { name: `c-${cpu}`, resources: { requests: { cpu } }, ...rest }
}

const sidecar = (cpu: string) => aContainer(cpu, { restartPolicy: 'Always' })

/** Requests of the claim that one pod alone gets. */
function claimRequests(pod: Pod): Resources | undefined {
  const { claims, failures } = schedule(anInput({ pods: [pod] }))
  assert.deepEqual(failures, [])
  assert.equal(claims.length, 1)
  return claims[0]?.requests
}

const cpuOf = (spec: PodSpec) => claimRequests(aPod({}, spec))?.['cpu']

describe('requests of a pod', () => {
  test('SCH-53 an init container that asks for more than the containers decides', () => {
    assert.equal(cpuOf({ initContainers: [aContainer('3')], containers: [aContainer('1')] }), 3000)
  })

  test('SCH-54 a sidecar runs beside the init containers after it', () => {
    const initContainers = [sidecar('2'), aContainer('3')]
    assert.equal(cpuOf({ initContainers, containers: [aContainer('1')] }), 5000)
  })

  test('SCH-55 a sidecar does not run beside the init containers before it', () => {
    const initContainers = [aContainer('3'), sidecar('2')]
    assert.equal(cpuOf({ initContainers, containers: [aContainer('1')] }), 3000)
  })

  test('SCH-56 requests of the whole pod replace those of its containers, overhead comes on top', () => {
    const containers = times(2, () => ({
      name: 'app',
      resources: { requests: { cpu: '1', memory: '1Gi' } },
    }))
    const resources = { requests: { cpu: '5' } }
    const memory = 2 * 2 ** 30
    assert.deepEqual(claimRequests(aPod({}, { containers, resources })), { cpu: 5000, memory, pods: 1 })
    assert.deepEqual(claimRequests(aPod({}, { containers, resources, overhead: { cpu: '250m' } })), {
      cpu: 5250,
      memory,
      pods: 1,
    })
  })

  test('SCH-57 a container being resized counts with the higher amount, without status with its spec', () => {
    const pod = aPod({ cpu: '1' })
    const withStatus = (status: NonNullable<Pod['status']>) => claimRequests({ ...pod, status })?.['cpu']
    const resources = { requests: { cpu: '2' } }
    const allocatedResources = { cpu: '3' }
    assert.equal(withStatus({ containerStatuses: [{ name: 'app', resources, allocatedResources }] }), 3000)
    assert.equal(withStatus({ containerStatuses: [{ name: 'app', resources }] }), 2000)
    assert.equal(withStatus({ containerStatuses: [{ name: 'app', allocatedResources }] }), 1000)
    const shrunk = [{ name: 'app', resources: { requests: { cpu: '500m' } } }]
    assert.equal(withStatus({ containerStatuses: shrunk }), 1000)
    assert.equal(withStatus({}), 1000)
  })

  test('a resize that the node cannot serve leaves what the container has', () => {
    const pod = aPod({ cpu: '7' })
    const containerStatuses = [
      { name: 'app', resources: { requests: { cpu: '1' } }, allocatedResources: { cpu: '2' } },
    ]
    const pending = { type: 'PodResizePending', status: 'True' }
    const withReason = (reason: string) =>
      claimRequests({ ...pod, status: { containerStatuses, conditions: [{ ...pending, reason }] } })?.['cpu']
    assert.equal(withReason('Infeasible'), 2000)
    assert.equal(withReason('Deferred'), 7000)
  })

  test('a sidecar being resized counts as well, another init container does not', () => {
    const statusOf = (name: string) => [{ name, resources: { requests: { cpu: '3' } } }]
    const spec = { initContainers: [sidecar('2')], containers: [aContainer('1')] }
    const resized = { ...aPod({}, spec), status: { initContainerStatuses: statusOf('c-2') } }
    assert.equal(claimRequests(resized)?.['cpu'], 4000)
    const once = { initContainers: [aContainer('2')], containers: [aContainer('1')] }
    const done = { ...aPod({}, once), status: { initContainerStatuses: statusOf('c-2') } }
    assert.equal(claimRequests(done)?.['cpu'], 2000)
  })
})

describe('types that hold the requests', () => {
  test('SCH-58 the overhead of the runtime counts for the choice of type', () => {
    const typesFor = (spec: Partial<PodSpec>) =>
      schedule(anInput({ pods: [aPod({ cpu: '3500m' }, spec)] })).claims.map((claim) => claim.instanceTypes)
    assert.deepEqual(typesFor({}), [['type-4', 'type-8', 'type-16']])
    assert.deepEqual(typesFor({ overhead: { cpu: '1' } }), [['type-8', 'type-16']])
  })

  test('SCH-59 a pod that asks for more than every type has fails, with its requests listed', () => {
    const pod = aPod({ cpu: '64', memory: '1Gi', 'example.com/gpu': '1' })
    const result = schedule(anInput({ pods: [pod] }))
    assert.deepEqual(result.claims, [])
    const text = failureTexts(result)[pod.metadata.name] ?? ''
    assert.match(text, /resources/)
    for (const part of ['cpu=64', 'memory=1Gi', 'example.com/gpu=1', 'pods=1'])
      assert.ok(text.includes(part), `${part} is not in: ${text}`)
  })

  test('SCH-60 a request for none of something needs nothing, even of what no type has', () => {
    const pod = aPod({ cpu: '0', memory: '0', 'example.com/gpu': '0' })
    assert.equal(claimRequests(pod)?.['pods'], 1)
    const result = schedule(anInput({ pods: [pod], nodes: [aNode('n1')] }))
    assert.deepEqual(placedOn(result), { [pod.metadata.name]: 'n1' })
  })

  test('SCH-62 a type for n pods holds n of them, daemon pods among them', () => {
    const type: InstanceType = {
      ...aType('few-pods', 16, 64),
      capacity: parseResources({ cpu: '16', memory: '64Gi', pods: '3' }),
    }
    const pools = [aPoolInput(aPool(), [type])]
    const podsPerClaim = (count: number, daemons = 0) => {
      const { claims, failures } = schedule(
        anInput({
          pods: times(count, () => aPod()),
          pools,
          daemons: times(daemons, (index) => aDaemon({ cpu: '100m' }, {}, `agent-${index}`)),
        }),
      )
      assert.deepEqual(failures, [])
      assert.ok(claims.every((claim) => claim.requests['pods'] === claim.pods.length + daemons))
      return claims.map((claim) => claim.pods.length).toSorted((a, b) => a - b)
    }
    assert.deepEqual(podsPerClaim(3), [3])
    assert.deepEqual(podsPerClaim(4), [1, 3])
    assert.deepEqual(podsPerClaim(3, 1), [1, 2])
  })

  test('the pods that a node has no place for go to a new one', () => {
    const available = parseResources({ cpu: '4', memory: '16Gi', pods: '2' })
    const { claims, placements } = schedule(
      anInput({ pods: times(3, () => aPod()), nodes: [aNode('n1', { available })] }),
    )
    assert.deepEqual([placements.length, claims.length], [2, 1])
  })

  test('a node with less than nothing left of one resource takes no pod at all', () => {
    const available = { ...parseResources({ cpu: '4', memory: '16Gi', pods: '110' }), 'example.com/gpu': -1 }
    const { claims, placements } = schedule(anInput({ pods: [aPod()], nodes: [aNode('n1', { available })] }))
    assert.deepEqual([placements.length, claims.length], [0, 1])
  })
})
