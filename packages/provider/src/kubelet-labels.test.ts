import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isKubeletLabel } from './kubelet-labels.ts'

const table: readonly (readonly [key: string, isAllowed: boolean])[] = [
  ['team', true],
  ['example.com/team', true],
  ['karpenter.sh/nodepool', true],
  ['notkubernetes.io/a', true],
  ['kubernetes.io.example.com/a', true],
  ['kubernetes.io/os', true],
  ['kubernetes.io/arch', true],
  ['kubernetes.io/hostname', true],
  ['beta.kubernetes.io/os', true],
  ['beta.kubernetes.io/arch', true],
  ['beta.kubernetes.io/instance-type', true],
  ['failure-domain.beta.kubernetes.io/zone', true],
  ['failure-domain.beta.kubernetes.io/region', true],
  ['topology.kubernetes.io/zone', true],
  ['topology.kubernetes.io/region', true],
  ['node.kubernetes.io/instance-type', true],
  ['node.kubernetes.io/anything', true],
  ['pool.node.kubernetes.io/a', true],
  ['kubelet.kubernetes.io/a', true],
  ['a.kubelet.kubernetes.io/a', true],
  ['kubernetes.io/role', false],
  ['kubernetes.io/cluster-service', false],
  ['k8s.io/a', false],
  ['x.k8s.io/a', false],
  ['storage.k8s.io/a', false],
  ['node-role.kubernetes.io/worker', false],
  ['node-role.kubernetes.io/control-plane', false],
  ['node-restriction.kubernetes.io/tenant', false],
  ['a.node-restriction.kubernetes.io/tenant', false],
  ['topology.kubernetes.io/rack', false],
  ['beta.kubernetes.io/a', false],
  ['mynode.kubernetes.io/a', false],
]

for (const [key, isAllowed] of table)
  test(`RPB-14 kubelet ${isAllowed ? 'may' : 'may not'} set ${key} itself`, () => {
    assert.equal(isKubeletLabel(key), isAllowed)
  })
