import { ownValue } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { each, fill, within } from './fill.ts'

const containerDefaults = { terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' }
const probeDefaults = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 }
const httpGetDefaults = { path: '/', scheme: 'HTTP' }
const tcp = { protocol: 'TCP' }

/** Defaults of a container, an init container or an ephemeral container. */
export function containerDefaultsOf(container: Loose): Loose {
  let filled = fill(container, containerDefaults)
  if (filled['imagePullPolicy'] === undefined) {
    filled = { ...filled, imagePullPolicy: pullPolicy(filled['image']) }
  }
  filled = each(filled, 'ports', (port) => fill(port, tcp))
  filled = each(filled, 'env', environmentDefaults)
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    if (ownValue(filled, probe) !== undefined) filled = within(filled, probe, probeDefaultsOf)
  }
  return filled['lifecycle'] === undefined ? filled : within(filled, 'lifecycle', lifecycleDefaults)
}

/** Images without a tag, or with the tag `latest`, are always pulled. */
export function pullPolicy(image: unknown): string {
  if (typeof image !== 'string' || /[@\s]/.test(image)) return 'IfNotPresent'
  const lastPart = image.slice(image.lastIndexOf('/') + 1)
  const colon = lastPart.indexOf(':')
  return colon < 0 || lastPart.slice(colon + 1) === 'latest' ? 'Always' : 'IfNotPresent'
}

function environmentDefaults(variable: Loose): Loose {
  if (variable['valueFrom'] === undefined) return variable
  return within(variable, 'valueFrom', (source) =>
    within(
      within(source, 'fieldRef', (field) => fill(field, { apiVersion: 'v1' })),
      'resourceFieldRef',
      (field) => fill(field, { divisor: '0' }),
    ),
  )
}

function probeDefaultsOf(probe: Loose): Loose {
  const filled = within(fill(probe, probeDefaults), 'httpGet', (get) => fill(get, httpGetDefaults))
  return within(filled, 'grpc', (grpc) => fill(grpc, { service: '' }))
}

function lifecycleDefaults(lifecycle: Loose): Loose {
  const handler = (value: Loose): Loose => within(value, 'httpGet', (get) => fill(get, httpGetDefaults))
  return within(within(lifecycle, 'postStart', handler), 'preStop', handler)
}
