/** The parts of a kube-scheduler configuration that decide where pods fit (cluster-autoscaler.md 4.4). */
import { isRecord, ownValue, type TopologySpreadConstraint } from '@tenon/api'
import { parseDocument } from 'yaml'

/** The only profile of a configuration. */
export interface SchedulerProfile {
  readonly schedulerName: string
  /** DoNotSchedule constraints for pods without their own; ScheduleAnyway ones are left out. */
  readonly defaultConstraints: readonly TopologySpreadConstraint[]
}

/** The profile, or why the text is invalid. */
export type ReadProfile = { readonly profile: SchedulerProfile } | { readonly problem: string }

const group = 'kubescheduler.config.k8s.io/'
const kind = 'KubeSchedulerConfiguration'

/** Parses the content of `--scheduler-config-file`. */
export function readSchedulerProfile(text: string): ReadProfile {
  const document = parseDocument(text)
  const [error] = document.errors
  if (error !== undefined) return { problem: `it is not valid YAML: ${error.message.split('\n')[0] ?? ''}` }
  const config: unknown = document.toJS()
  if (!isRecord(config)) return { problem: `it is no ${kind}` }
  const { apiVersion, kind: found, profiles } = config
  if (found !== kind || typeof apiVersion !== 'string' || !apiVersion.startsWith(group))
    return {
      problem: `it is ${String(apiVersion)} ${String(found)}; write apiVersion: ${group}v1 and kind: ${kind}`,
    }
  if (!Array.isArray(profiles) || profiles.length !== 1 || !isRecord(profiles[0]))
    return { problem: 'it must have exactly one profile under profiles' }
  return profileOf(profiles[0])
}

function profileOf(profile: Readonly<Record<string, unknown>>): ReadProfile {
  const { schedulerName = 'default-scheduler', pluginConfig = [] } = profile
  if (typeof schedulerName !== 'string') return { problem: 'profiles[0].schedulerName must be a name' }
  if (!Array.isArray(pluginConfig)) return { problem: 'profiles[0].pluginConfig must be a list' }
  const spread = pluginConfig.filter(isRecord).find(({ name }) => name === 'PodTopologySpread')
  const args = spread?.['args']
  const constraints = isRecord(args) ? (ownValue(args, 'defaultConstraints') ?? []) : []
  const defaulting = isRecord(args) ? (ownValue(args, 'defaultingType') ?? 'System') : 'System'
  if (!Array.isArray(constraints) || !constraints.every(isConstraint))
    return {
      problem:
        'defaultConstraints of PodTopologySpread must have maxSkew, topologyKey and whenUnsatisfiable, and no labelSelector',
    }
  if (constraints.length > 0 && defaulting !== 'List')
    return { problem: 'defaultConstraints of PodTopologySpread take defaultingType: List' }
  const isHard = ({ whenUnsatisfiable }: TopologySpreadConstraint) => whenUnsatisfiable === 'DoNotSchedule'
  return { profile: { schedulerName, defaultConstraints: constraints.filter(isHard) } }
}

function isConstraint(value: unknown): value is TopologySpreadConstraint {
  if (!isRecord(value)) return false
  const { maxSkew, topologyKey, whenUnsatisfiable, labelSelector } = value
  return (
    (labelSelector === undefined || labelSelector === null) &&
    Number.isInteger(maxSkew) &&
    (maxSkew as number) >= 1 &&
    typeof topologyKey === 'string' &&
    topologyKey !== '' &&
    (whenUnsatisfiable === 'DoNotSchedule' || whenUnsatisfiable === 'ScheduleAnyway')
  )
}
