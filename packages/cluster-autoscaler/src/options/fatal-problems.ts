/** Errors in flag values that prevent the start (cluster-autoscaler.md 3.1, 4.5, 8). */
import { drainPrioritiesOf } from './drain-priorities.ts'
import type { FlagValues } from './flag-values.ts'
import { kubernetesAddressOf } from './kubernetes-address.ts'
import type { ExpanderName } from './options.ts'
import { gpuRangeOf, listenAddressOf, rangeOf, severityOf } from './texts.ts'

const expanderNames: readonly ExpanderName[] = [
  'random',
  'most-pods',
  'least-nodes',
  'least-waste',
  'priority',
  'grpc',
]

/** Expander names in order; {@link fatalProblem} has checked them. */
export function expandersOf(values: FlagValues): readonly ExpanderName[] {
  const asked = values.text('expander').split(',')
  return asked.flatMap((name) => expanderNames.filter((known) => known === name))
}

/** The first problem, with the flag and the fix; undefined if there is none. */
export function fatalProblem(values: FlagValues, clouds: readonly string[]): string | undefined {
  return (
    cloudProblem(values, clouds) ??
    expanderProblem(values) ??
    rangeProblem(values) ??
    gpuProblem(values) ??
    drainProblem(values) ??
    schedulerNameProblem(values) ??
    leaseProblem(values) ??
    requestProblem(values) ??
    otherProblem(values)
  )
}

function cloudProblem(values: FlagValues, clouds: readonly string[]): string | undefined {
  const asked = values.text('cloud-provider')
  if (asked === '')
    return values.isGiven('cloud-provider')
      ? `--cloud-provider is empty; give ${clouds.join(' or ')}, or take it out`
      : undefined
  if (clouds.includes(asked)) return undefined
  return `--cloud-provider=${asked}: this cloud is not known here; give ${clouds.join(' or ')}`
}

function expanderProblem(values: FlagValues): string | undefined {
  const names = values.text('expander').split(',')
  for (const [at, name] of names.entries()) {
    if (name === 'price')
      return `--expander: price needs prices, which the cloud's groups do not tell; give least-waste`
    if (!expanderNames.some((known) => known === name))
      return `--expander: ${name === '' ? 'a name is empty' : `${name} is not known`}; give ${expanderNames.join(', ')}`
    if (names.indexOf(name) !== at) return `--expander: ${name} stands there twice; take one out`
    if (name === 'random' && at < names.length - 1)
      return '--expander: random always decides, so that nothing may follow it; put it last'
  }
  if (!names.includes('grpc')) return undefined
  if (values.text('grpc-expander-url') === '') return '--expander=grpc needs --grpc-expander-url'
  if (values.text('grpc-expander-cert') === '')
    return '--expander=grpc needs --grpc-expander-cert, a file of certificates'
  return undefined
}

function rangeProblem(values: FlagValues): string | undefined {
  return ['cores-total', 'memory-total']
    .filter((name) => rangeOf(values.text(name)) === undefined)
    .map((name) => `--${name}=${values.text(name)}: give MIN:MAX, whole numbers with 0 <= MIN <= MAX`)[0]
}

function gpuProblem(values: FlagValues): string | undefined {
  for (const text of values.list('gpu-total')) {
    if (gpuRangeOf(text) === undefined)
      return `--gpu-total=${text}: give TYPE:MIN:MAX, whole numbers with 0 <= MIN <= MAX`
  }
  return undefined
}

function drainProblem(values: FlagValues): string | undefined {
  const text = values.text('drain-priority-config')
  if (text === '') return undefined
  if (values.isGiven('max-graceful-termination-sec'))
    return '--drain-priority-config and --max-graceful-termination-sec exclude each other; take one out'
  return drainPrioritiesOf(text) === undefined
    ? `--drain-priority-config=${text}: give PRIORITY:SECONDS with commas between, such as 0:60,1000:30`
    : undefined
}

function schedulerNameProblem(values: FlagValues): string | undefined {
  const allowed = values.list('allowed-scheduler-names')
  if (allowed.length === 0) return undefined
  const missing = values.list('bypassed-scheduler-names').filter((name) => !allowed.includes(name))
  return missing.length === 0
    ? undefined
    : `--bypassed-scheduler-names: ${missing.join(', ')} must be in --allowed-scheduler-names, too`
}

function leaseProblem(values: FlagValues): string | undefined {
  if (!values.isOn('leader-elect')) return undefined
  const lock = values.text('leader-elect-resource-lock')
  if (lock !== 'leases') return `--leader-elect-resource-lock=${lock}: give leases, the only one there is`
  const [lease = 0, renew = 0, retry = 0] = ['lease-duration', 'renew-deadline', 'retry-period'].map((name) =>
    values.durationMs(`leader-elect-${name}`),
  )
  if (lease <= renew) return '--leader-elect-lease-duration must be more than --leader-elect-renew-deadline'
  return retry > 0 && renew > retry
    ? undefined
    : '--leader-elect-renew-deadline must be more than --leader-elect-retry-period, and that more than 0'
}

function requestProblem(values: FlagValues): string | undefined {
  const sizes = [
    'check-capacity-provisioning-request-max-batch-size',
    'provisioning-request-max-backoff-cache-size',
  ]
  const wrong = sizes.find((name) => values.integer(name) < 1)
  return wrong === undefined ? undefined : `--${wrong}=${values.text(wrong)}: give 1 or more`
}

function otherProblem(values: FlagValues): string | undefined {
  const text = (name: string) => `--${name}=${values.text(name)}`
  if (values.text('estimator') !== 'binpacking')
    return `${text('estimator')}: give binpacking, the only one there is`
  if (values.integer('predicate-parallelism') < 1) return `${text('predicate-parallelism')}: give 1 or more`
  if (listenAddressOf(values.text('address')) === undefined)
    return `${text('address')}: give HOST:PORT, such as :8085`
  if (!['text', 'json'].includes(values.text('logging-format')))
    return `${text('logging-format')}: give text or json`
  for (const name of ['stderrthreshold', 'alsologtostderrthreshold'])
    if (severityOf(values.text(name)) === undefined)
      return `${text(name)}: give INFO, WARNING, ERROR, FATAL or 0 to 3`
  for (const gate of values.list('feature-gates').flatMap((list) => list.split(',')))
    if (!/^\s*([A-Z]\w*\s*=\s*(true|false|[tTfF01]|True|TRUE|False|FALSE)\s*)?$/.test(gate))
      return `--feature-gates: ${gate} is no gate; give NAME=true or NAME=false, with commas between`
  return 'problem' in kubernetesAddressOf(values.text('kubernetes'))
    ? `${text('kubernetes')}: give a URL such as https://host:6443?inClusterConfig=false`
    : undefined
}
