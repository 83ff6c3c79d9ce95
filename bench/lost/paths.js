/** The path of the API, at the provider's port and at every program. */
export const API_PATH = '/api/data'
