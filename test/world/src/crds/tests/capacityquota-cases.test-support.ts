/** CapacityQuota (quotas.md 1): its bounds, and what it stores. */
import { accepts, type CrdCase, numbered, refuses } from './crd-case.test-support.ts'
import { aCapacityQuota } from './manifests.test-support.ts'

const message = /All resource quantities must be non-negative integers\./
const ofNames = (names: readonly string[]) =>
  aCapacityQuota(Object.fromEntries(names.map((name) => [name, 1])))

export const capacityQuotaCases: readonly CrdCase[] = [
  ...refuses(
    'WNT-6 CapacityQuota amount',
    message,
    ['500m', '1000m', '3.67Gi', '-1', '-1Gi', '0.5', -1],
    (cpu) => aCapacityQuota({ cpu }),
  ),
  ...refuses('CapacityQuota amount', /resources\[?.?cpu/, ['', 'many', true], (cpu) =>
    aCapacityQuota({ cpu }),
  ),
  ...accepts(
    'WNT-6 CapacityQuota amount',
    ['32Gi', '2k', '10', 10, 0, '0', '1e3', '1Pi', '1.5Gi', '4Ei'],
    (memory) => aCapacityQuota({ memory }),
  ),
  ...refuses('WNT-6 CapacityQuota entries', /at most 15 items/, [numbered('r', 16)], ofNames),
  ...accepts('WNT-6 CapacityQuota entries', [numbered('r', 15), []], ofNames),
  ...refuses(
    'WNT-6 CapacityQuota names',
    /Resource names must have at most 63 characters/,
    ['a'.repeat(64)],
    (name) => ofNames([name]),
  ),
  ...accepts('WNT-6 CapacityQuota names', ['a'.repeat(63), 'nodes', 'example.com/gpu'], (name) =>
    ofNames([name]),
  ),
  ...refuses(
    'CapacityQuota',
    /Required value/,
    [undefined, {}, { limits: {} }, { selector: { matchExpressions: [{}] }, limits: { resources: {} } }],
    (spec) => ({ ...aCapacityQuota({}), spec }),
  ),
  {
    name: 'a CapacityQuota of the version before is stored as one of this',
    create: { ...aCapacityQuota({ nodes: 10 }), apiVersion: 'autoscaling.x-k8s.io/v1alpha1' },
    stored: { 'spec.limits.resources.nodes': 10 },
  },
  {
    name: 'the status of a CapacityQuota is kept',
    create: aCapacityQuota({ cpu: 40 }),
    change: {
      subresource: 'status',
      manifest: {
        ...aCapacityQuota({ cpu: 40 }),
        status: { used: { resources: { cpu: '12' } }, observedGeneration: 1 },
      },
    },
    stored: { 'status.used.resources.cpu': '12', 'status.observedGeneration': 1 },
  },
]
