import manifest from '../package.json' with { type: 'json' }

/** Version of this program, as in its package. */
export const version: string = manifest.version
