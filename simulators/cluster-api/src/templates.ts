import { isDeepStrictEqual } from 'node:util'
import type { HubParts } from './hub-parts.ts'
import type { InfrastructureTemplate } from './kinds.ts'

/** Tells what machines of a template have, as infrastructure providers do for scaling from zero (cluster-api.md 6). */
export function tellTemplate({ api, kinds }: HubParts, template: InfrastructureTemplate): void {
  const { architecture = 'amd64', capacity, operatingSystem = 'linux' } = template.spec?.template?.spec ?? {}
  if (capacity === undefined) return
  const status = { capacity, nodeInfo: { architecture, operatingSystem } }
  const { metadata } = template
  if (!isDeepStrictEqual(template.status, status))
    api.patch(kinds.template, metadata.namespace, metadata.name, { status }, 'status')
}
