/** ProvisioningRequest (gangs.md 1): its bounds, and what cannot change. */
import { accepts, type CrdCase, type Manifest, refuses } from './crd-case.test-support.ts'

const provisioningClassName = 'check-capacity.autoscaling.x-k8s.io'
const set = { podTemplateRef: { name: 'workers' }, count: 4 }
const spec = { podSets: [set], provisioningClassName }

function aRequest(fields: object = {}, version = 'v1'): Manifest {
  return {
    apiVersion: `autoscaling.x-k8s.io/${version}`,
    kind: 'ProvisioningRequest',
    metadata: { namespace: 'default' },
    spec: { ...spec, ...fields },
  }
}

const longName = `${'a'.repeat(250)}.bcd`
const changed = (name: string, from: object, to: object, refused?: RegExp): CrdCase => ({
  name: `ProvisioningRequest ${name}`,
  create: aRequest(from),
  change: { manifest: aRequest(to) },
  ...(refused && { refused }),
})

export const provisioningRequestCases: readonly CrdCase[] = [
  ...accepts(
    'ProvisioningRequest',
    [{}, { parameters: { noRetry: 'true' } }, { podSets: [set, set] }],
    aRequest,
  ),
  ...accepts('ProvisioningRequest of a former version', [{}], (fields) => aRequest(fields, 'v1beta1')),
  ...accepts('ProvisioningRequest class', ['anything.example.com'], (name) =>
    aRequest({ provisioningClassName: name }),
  ),
  ...refuses('ProvisioningRequest without sets', /podSets/, [[], undefined], (podSets) =>
    aRequest({ podSets }),
  ),
  ...refuses('ProvisioningRequest with too many sets', /must have at most 32 items/, [33], (count) =>
    aRequest({ podSets: Array.from({ length: count }, () => set) }),
  ),
  ...refuses('ProvisioningRequest count', /greater than or equal to 1/, [0, -1], (count) =>
    aRequest({ podSets: [{ ...set, count }] }),
  ),
  ...refuses('ProvisioningRequest without a count', /count: Required value/, [undefined], (count) =>
    aRequest({ podSets: [{ ...set, count }] }),
  ),
  ...refuses(
    'ProvisioningRequest template name',
    /podTemplateRef\.name/,
    ['', 'Upper', 'a_b', longName],
    (name) => aRequest({ podSets: [{ ...set, podTemplateRef: { name } }] }),
  ),
  ...refuses(
    'ProvisioningRequest class',
    /provisioningClassName/,
    [undefined, '', 'Upper', longName],
    (name) => aRequest({ provisioningClassName: name }),
  ),
  ...refuses(
    'ProvisioningRequest parameters',
    /Too long|may not be (longer|more) than 255/,
    ['x'.repeat(256)],
    (value) => aRequest({ parameters: { key: value } }),
  ),
  changed('sets stay', {}, { podSets: [{ ...set, count: 5 }] }, /Value is immutable/),
  changed('class stays', {}, { provisioningClassName: 'other.example.com' }, /Value is immutable/),
  changed('parameters stay', { parameters: { a: 'b' } }, { parameters: { a: 'c' } }, /Value is immutable/),
  changed('parameters may come', {}, { parameters: { a: 'b' } }),
  changed('parameters may go', { parameters: { a: 'b' } }, {}),
]
