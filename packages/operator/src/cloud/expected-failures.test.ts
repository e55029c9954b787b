import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubeError } from '@tenon/kube'
import { ProviderError } from '@tenon/provider'
import { isExpectedFailure } from './expected-failures.ts'

const conflict = new KubeError('conflict', 409, 'the object has been modified')
const quota = new KubeError('forbidden', 403, 'nodeclaims "a" is forbidden: exceeded quota: nodes')
const webhook = new KubeError(
  'forbidden',
  403,
  'admission webhook "policy.example.com" denied the request: no',
)
const right = new KubeError(
  'forbidden',
  403,
  'nodeclaims "a" is forbidden: User "system:serviceaccount:tenon:tenon" cannot patch resource "nodeclaims" in API group "karpenter.sh" at the cluster scope',
)

test('changes meanwhile, refusals and clouds without capacity are expected; bugs, lacking rights and unknown errors are not', () => {
  const expected = [
    conflict,
    quota,
    webhook,
    new KubeError('notFound', 404, 'gone'),
    new KubeError('invalid', 422, 'spec.a: Invalid value'),
    new ProviderError('insufficientCapacity', 'no room'),
    new ProviderError('nodeClassNotReady', 'wait'),
    new AggregateError([conflict, quota]),
    new Error('NodePool a: the object has been modified', { cause: conflict }),
  ]
  for (const error of expected) assert.equal(isExpectedFailure(error), true, error.message)
  const alarming = [
    right,
    new KubeError('transport', 0, 'connection refused'),
    new KubeError('unauthorized', 401, 'Unauthorized'),
    new ProviderError('unauthorized', 'the key is unknown'),
    new ProviderError('other', 'the answer is not JSON'),
    new TypeError('x is not a function'),
    new AggregateError([conflict, new TypeError('x is not a function')]),
    new AggregateError([]),
    new Error('NodePool a: x', { cause: new TypeError('x') }),
    'text',
  ]
  for (const error of alarming) assert.equal(isExpectedFailure(error), false, String(error))
})
