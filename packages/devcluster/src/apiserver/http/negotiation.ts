import { notAcceptable } from './status.ts'

const json = 'application/json'
const yaml = 'application/yaml'
export const protobuf = 'application/vnd.kubernetes.protobuf'

/** The form of objects in responses. */
export type Representation =
  | { readonly kind: 'object' }
  | { readonly kind: 'table'; readonly version: string }
  | { readonly kind: 'metadata'; readonly version: string }
  | { readonly kind: 'discovery'; readonly version: string }

interface MediaRange {
  readonly type: string
  readonly parameters: Readonly<Record<string, string>>
}

/** The ranges of an Accept header, by preference. */
export function acceptedRanges(accept: string | undefined): MediaRange[] {
  const ranges = (accept ?? '*/*').split(',').map((part) => {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim())
    const pairs = parameters.map((parameter) => {
      const at = parameter.indexOf('=')
      return [parameter.slice(0, at), parameter.slice(at + 1)]
    })
    return { type: type.toLowerCase(), parameters: Object.fromEntries(pairs) as Record<string, string> }
  })
  const quality = (range: MediaRange) => Number(range.parameters['q'] ?? 1)
  return ranges.filter((range) => quality(range) > 0).sort((a, b) => quality(b) - quality(a))
}

/**
 * The representation that a client wants. Tables and metadata are only served as JSON.
 * @throws ApiError 406 if the client accepts no served form.
 */
export function representationOf(accept: string | undefined): Representation {
  // The usual case.
  if (accept === json) return { kind: 'object' }
  for (const { type, parameters } of acceptedRanges(accept)) {
    if (!isJson(type)) continue
    const kind = parameters['as']
    const version = parameters['v'] ?? 'v1'
    if (kind === undefined) return { kind: 'object' }
    if (kind === 'Table') return { kind: 'table', version }
    if (kind === 'PartialObjectMetadata' || kind === 'PartialObjectMetadataList')
      return { kind: 'metadata', version }
    if (kind === 'APIGroupDiscoveryList' && (version === 'v2' || version === 'v2beta1'))
      return { kind: 'discovery', version }
  }
  throw notAcceptable([json, yaml])
}

function isJson(type: string): boolean {
  return type === json || type === '*/*' || type === 'application/*' || type === yaml
}

/** The media type of a Content-Type header, without parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/** Whether a body of this type can be parsed. */
export function isReadable(mediaType: string): boolean {
  return (
    mediaType !== protobuf &&
    (mediaType === '' ||
      /^(application|text)\/([\w.-]+\+)?(json|yaml|plain|x-yaml|x-www-form-urlencoded)$/.test(mediaType))
  )
}

export const readableTypes = [json, yaml] as const
