/** How to reach the management cluster (cluster-api.md 14). */
import { directKubeConfig, KubeConfigError, type LoadedKubeConfig, loadKubeConfig } from '@tenon/kube'
import { type ProviderEnvironment, ProviderSettingError } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import { type ServedVersion, servedVersions } from '../objects.ts'
import type { HubScope } from './hub.ts'
import { given, groupIn, scopeIn } from './scope.ts'

/** Settings of the management cluster. */
export interface HubSettings {
  /** Absent if the cluster is its own management cluster. */
  readonly config?: LoadedKubeConfig
  readonly scope: HubScope
  /** API group of Cluster API. */
  readonly group: string
  /** Absent = the newest supported version that is served. */
  readonly version?: ServedVersion
}

/** @throws ProviderSettingError for an invalid kubeconfig or URL. */
export function readHubSettings(env: ProviderEnvironment, clock: Clock, logger: Logger): HubSettings {
  const variable: Given = (name) => given(env, name)
  const config = readConfig(variable, clock, logger)
  const version = readVersion(variable('CAPI_VERSION'))
  return {
    scope: scopeIn(env),
    group: groupIn(env),
    ...(version !== undefined && { version }),
    ...(config !== undefined && { config }),
  }
}

type Given = (name: string) => string | undefined

function readConfig(variable: Given, clock: Clock, logger: Logger): LoadedKubeConfig | undefined {
  const kubeconfig = variable('CLUSTER_API_KUBECONFIG')
  const url = variable('CLUSTER_API_URL')
  if (kubeconfig !== undefined) {
    if (url !== undefined) logger.warn('CLUSTER_API_URL is ignored: CLUSTER_API_KUBECONFIG is set')
    return usable('CLUSTER_API_KUBECONFIG', () => loadKubeConfig({ kubeconfig, env: {}, clock }))
  }
  const token = variable('CLUSTER_API_TOKEN')
  const authority = variable('CLUSTER_API_CERTIFICATE_AUTHORITY_DATA')
  const skipTlsVerify = variable('CLUSTER_API_SKIP_TLS_VERIFY') === 'true'
  if (url === undefined) {
    if (token !== undefined || authority !== undefined || skipTlsVerify)
      logger.warn(
        'CLUSTER_API_TOKEN, CLUSTER_API_CERTIFICATE_AUTHORITY_DATA and CLUSTER_API_SKIP_TLS_VERIFY are ignored: CLUSTER_API_URL is not set',
      )
    return undefined
  }
  if (skipTlsVerify && authority !== undefined)
    throw new ProviderSettingError(
      'cannot go with CLUSTER_API_CERTIFICATE_AUTHORITY_DATA: set one of them',
      'CLUSTER_API_SKIP_TLS_VERIFY',
    )
  if (authority !== undefined && !authority.includes('-----BEGIN'))
    throw new ProviderSettingError(
      'it must be PEM text, which begins with -----BEGIN CERTIFICATE-----, not base64',
      'CLUSTER_API_CERTIFICATE_AUTHORITY_DATA',
    )
  const address = {
    url,
    source: 'CLUSTER_API_URL',
    skipTlsVerify,
    ...(token !== undefined && { token }),
    ...(authority !== undefined && { certificateAuthority: authority }),
  }
  return usable('CLUSTER_API_URL', () => directKubeConfig(address, clock))
}

function usable(variable: string, load: () => LoadedKubeConfig): LoadedKubeConfig {
  try {
    return load()
  } catch (error) {
    if (error instanceof KubeConfigError) throw new ProviderSettingError(error.message, variable)
    throw error
  }
}

/** @throws ProviderSettingError for a version that is not supported. */
export function readVersion(text: string | undefined): ServedVersion | undefined {
  if (text === undefined) return undefined
  const version = servedVersions.find((each) => each === text)
  if (version === undefined)
    throw new ProviderSettingError(
      `"${text}" is not supported: use ${servedVersions.join(' or ')}`,
      'CAPI_VERSION',
    )
  return version
}
