/** Features that kubelets must declare for a pod. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { featuresOfKubelet, type Pod } from '@tenon/api'
import {
  aDaemonOf,
  aNode,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  failureTexts,
  placedOn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const restarts = 'RestartAllContainersOnContainerExits'
const onHost = 'UserNamespacesHostNetworkSupport'

/** A pod whose container restarts all others when it exits. */
function aRestartingPod(): Pod {
  return aPod({}, { containers: [{ name: 'app', restartPolicyRules: [{ action: 'RestartAllContainers' }] }] })
}

/** A NodePool with kubelets of a minor of Kubernetes. */
const withKubelets = (minor: number, name = 'default') => ({
  ...aPoolInput(aPool(name)),
  declaredFeatures: featuresOfKubelet(minor) ?? [],
})

describe('declared features', () => {
  test('VER-22 VER-24 a new node is launched only if its kubelet will declare what the pod needs', () => {
    const pod = aRestartingPod()
    const older = schedule(anInput({ pods: [pod], pools: [withKubelets(35)] }))
    assert.deepEqual(older.claims, [])
    assert.match(
      failureTexts(older)[pod.metadata.name] ?? '',
      new RegExp(`not known to declare ${restarts} `),
    )
    const newer = schedule(anInput({ pods: [pod], pools: [withKubelets(35, 'z'), withKubelets(36, 'a')] }))
    assert.deepEqual(
      newer.claims.map(({ pool }) => pool.metadata.name),
      ['a'],
    )
    const unknown = schedule(anInput({ pods: [pod], pools: [aPoolInput(aPool('default'))] }))
    assert.deepEqual(unknown.claims, [])
  })

  test('VER-23 of the nodes of one NodePool those fit that declare it', () => {
    const pod = aRestartingPod()
    const nodes = [aNode('a'), aNode('b', { declaredFeatures: [onHost, restarts] })]
    assert.deepEqual(placedOn(schedule(anInput({ pods: [pod], nodes }))), { [pod.metadata.name]: 'b' })
    const plain = aPod()
    assert.deepEqual(placedOn(schedule(anInput({ pods: [plain], nodes }))), { [plain.metadata.name]: 'a' })
  })

  test('VER-25 user namespaces on the network of the host are no default of any kubelet', () => {
    const pod = aPod({}, { hostNetwork: true, hostUsers: false })
    const byDefault = schedule(anInput({ pods: [pod], pools: [withKubelets(37)] }))
    assert.deepEqual(byDefault.claims, [])
    const declared = { ...aPoolInput(aPool('default')), declaredFeatures: [onHost] }
    assert.equal(schedule(anInput({ pods: [pod], pools: [declared] })).claims.length, 1)
    const plain = aPod({}, { hostNetwork: true })
    assert.equal(schedule(anInput({ pods: [plain], pools: [aPoolInput(aPool('default'))] })).claims.length, 1)
  })

  test('a daemon pod that the kubelet cannot run takes no room', () => {
    const requests = { cpu: '3' }
    const daemon = aDaemonOf({
      containers: [
        { name: 'agent', resources: { requests }, restartPolicyRules: [{ action: 'RestartAllContainers' }] },
      ],
    })
    const pod = aPod({}, { containers: [{ name: 'app', resources: { requests } }] })
    const claimsWith = (minor: number) =>
      schedule(anInput({ pods: [pod], daemons: [daemon], pools: [withKubelets(minor)] })).claims.map(
        ({ requests: all }) => all['cpu'],
      )
    assert.deepEqual([claimsWith(35), claimsWith(36)], [[3000], [6000]])
  })
})
