/** The published data of Exoscale, for checks without an account. */
import type { InstanceType, KubeObject } from '@tenon/api'
import {
  type OfflineCatalogue,
  type OfflineFinding,
  type OfflineTypes,
  type ProviderEnvironment,
  ProviderSettingError,
} from '@tenon/provider'
import { publishedZones } from './catalogue/published-catalogue.ts'
import { publishedInstanceTypes } from './catalogue/published-types.ts'
import { choosableLabels } from './identifiers.ts'
import { type FormerField, formerFieldsOf } from './nodeclass/former-fields.ts'
import type { ExoscaleNodeClass } from './nodeclass/types.ts'
import { readGpuDevices } from './options.ts'

/**
 * @param env `EXOSCALE_ZONE` selects the zone; default: all zones. With `EXOSCALE_GPU_DEVICES`, types have the devices
 * that their nodes publish.
 * @throws ProviderSettingError if no types of the zone are known, or the GPU driver is unknown.
 */
export function offlineCatalogue(env: ProviderEnvironment): OfflineCatalogue {
  const zone = env['EXOSCALE_ZONE'] ?? ''
  if (zone !== '' && !publishedZones.includes(zone))
    throw new ProviderSettingError(
      `no instance types are known for zone ${zone}; known zones are ${publishedZones.join(', ')}`,
      'EXOSCALE_ZONE',
    )
  const gpuDevices = readGpuDevices(env)
  if ('error' in gpuDevices) throw new ProviderSettingError(gpuDevices.error, 'EXOSCALE_GPU_DEVICES')
  const hasGpuDriver = gpuDevices.ok !== undefined
  const typesIn = (zones: readonly string[], nodeClass: KubeObject | undefined): readonly InstanceType[] =>
    zones.flatMap((each) =>
      publishedInstanceTypes(each, (nodeClass as ExoscaleNodeClass | undefined)?.spec, hasGpuDriver),
    )
  const typesOf = (nodeClass: KubeObject | undefined): OfflineTypes => {
    const known = typesIn(publishedZones, nodeClass)
    return { known, offered: zone === '' ? known : typesIn([zone], nodeClass) }
  }
  return {
    rules: { wellKnownLabels: choosableLabels },
    typesOf,
    findingsOf: (nodeClass) => formerFieldsOf((nodeClass as ExoscaleNodeClass).spec).map(formerField),
    problems: [],
  }
}

function formerField({ field, message }: FormerField): OfflineFinding {
  return { severity: 'warning', field, message: `field of an earlier release: ${message}` }
}
