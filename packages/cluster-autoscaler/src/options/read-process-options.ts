import { isRead } from './flag.ts'
import { allFlags } from './flag-groups.ts'
import { anyVictimFlag, authoritativeFlag } from './flags/cluster-flags.ts'
import type { FlagValues } from './flag-values.ts'
import { kubernetesAddressOf } from './kubernetes-address.ts'
import type { LogOptions, ProcessOptions } from './process-options.ts'
import { listenAddressOf, leastSevere, severityOf } from './texts.ts'

/** The cloud whose groups are scaled. */
export function cloudOf(values: FlagValues, clouds: readonly string[]): string {
  return values.text('cloud-provider') || (clouds[0] ?? '')
}

/** Converts valid flag values to process options. */
export function processOptions(values: FlagValues, clouds: readonly string[]): ProcessOptions {
  const kubernetes = kubernetesAddressOf(values.text('kubernetes'))
  const cloudProvider = cloudOf(values, clouds)
  const reads = (name: string) => allFlags.some((flag) => flag.flag === name && isRead(flag, cloudProvider))
  return {
    cloudProvider,
    ...(reads('cloud-config') && {
      management: {
        kubeconfig: values.text('cloud-config'),
        isAuthoritative: values.isOn(authoritativeFlag),
      },
    }),
    discoverySpecs: reads('node-group-auto-discovery') ? values.list('node-group-auto-discovery') : [],
    anyMachinePoolVictim: values.isOn(anyVictimFlag),
    nodeGroupSpecs: values.list('nodes'),
    allowsEmptyGroups: values.isOn('allow-scale-to-zero'),
    listen: listenAddressOf(values.text('address')) ?? { host: '', port: 8085 },
    kubeconfig: values.text('kubeconfig'),
    kubernetes: 'address' in kubernetes ? kubernetes.address : undefined,
    rate: rateOf(values.number('kube-client-qps'), values.integer('kube-client-burst')),
    leaseName: values.text('leader-elect-resource-name'),
    acceptsClusterIdentity: values.isOn('accept-cluster-identity'),
    leaderElection: values.isOn('leader-elect')
      ? {
          leaseDurationMs: values.durationMs('leader-elect-lease-duration'),
          renewDeadlineMs: values.durationMs('leader-elect-renew-deadline'),
          retryPeriodMs: values.durationMs('leader-elect-retry-period'),
        }
      : undefined,
    logs: logOptions(values),
    isProfiling: values.isOn('profiling'),
    servesSnapshots: values.isOn('debugging-snapshot-enabled'),
    schedulerConfigFile: values.text('scheduler-config-file'),
  }
}

/** As in Kubernetes' own client, 0 means its default, and a negative value no limit. */
function rateOf(qps: number, burst: number): ProcessOptions['rate'] {
  if (qps < 0) return undefined
  return { perSecond: qps === 0 ? 5 : qps, burst: burst <= 0 ? 10 : burst }
}

function logOptions(values: FlagValues): LogOptions {
  const toFile = !values.isOn('logtostderr') && values.text('log-file') !== ''
  const from = severityOf(values.text('stderrthreshold')) ?? 'INFO'
  const alsoFrom = severityOf(values.text('alsologtostderrthreshold')) ?? 'INFO'
  const fileFrom = values.isOn('alsologtostderr') ? leastSevere(from, alsoFrom) : from
  return {
    verbosity: values.integer('v'),
    format: values.text('logging-format') === 'json' ? 'json' : 'text',
    file: toFile ? values.text('log-file') : '',
    standardErrorFrom: toFile ? fileFrom : 'INFO',
  }
}
