/** Flags that `tenon up` and `tenon devcluster` share. */
import { minorOf, testedMinors } from '@tenon/api'
import { InvalidArgumentError } from 'commander'
import { CliError } from '../errors.ts'
import { builtInProviders } from '../providers.ts'

const simulatedNames = builtInProviders
  .filter(({ simulator }) => simulator !== undefined)
  .map(({ name }) => name)

export const simulatedProvider = `cloud to simulate: ${[...simulatedNames, 'a provider module or package'].join(', ')} (default: ${simulatedNames[0] ?? 'none'})`

export interface CloudFlag {
  readonly provider?: string
  readonly cloud?: string
}

/** Accepts `--cloud` as an alias of `--provider`. */
export function withProvider<O extends CloudFlag>({ cloud, ...options }: O): Omit<O, 'cloud'> {
  if (cloud === undefined) return options
  const { provider = cloud } = options
  if (provider !== cloud)
    throw new CliError(`--cloud=${cloud} and --provider=${provider} are different; use one of them`)
  return { ...options, provider }
}

/** Describes a default port in the help. */
export function usually(number: number): string {
  return `default: ${number}, or a free one if that is in use`
}

/** Default ports of the embedded cluster. */
export const defaultPorts = { api: 16_443, cloud: 16_080 } as const

/** Kinds, defaults and refusals of the embedded cluster are those of this version. */
export const imitatedVersion = 'v1.36.0'

export const kubernetesVersionText =
  'version of Kubernetes that the embedded cluster reports, and whose rules it follows where versions differ, such as 1.36 or v1.36.3'

export const nodeGroupsText =
  'the simulated cloud starts with node groups that have nodes, for tenon migrate and Cluster Autoscaler mode'

/** Reads `--kubernetes-version`; without a patch it is that of the first release of the minor. */
export function kubernetesVersion(text: string): string {
  const minor = minorOf(text)
  const { oldest, newest } = testedMinors
  if (minor === undefined || minor < oldest || minor > newest)
    throw new InvalidArgumentError(`Use a version from 1.${oldest} to 1.${newest}.`)
  const version = text.replace(/^v?/, 'v')
  return /^v1\.\d+$/.test(version) ? `${version}.0` : version
}
