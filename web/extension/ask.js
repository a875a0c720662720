// Asks the browser for the place: used beside a page, and in the extension's own document.

globalThis.browsersPlace = ({ approximate, high } = {}) => {
  const options = { enableHighAccuracy: !!high, maximumAge: 10_000, timeout: 60_000 };
  if (approximate) options.accuracyMode = "approximate";
  return new Promise((resolve) => {
    const { geolocation } = navigator;
    if (!geolocation) return resolve({ error: { code: 2, message: "Position unavailable" } });
    geolocation.getCurrentPosition(
      ({ coords, timestamp }) => {
        const { latitude, longitude, altitude, accuracy, altitudeAccuracy, heading, speed } = coords;
        resolve({ position: { coords: { latitude, longitude, altitude, accuracy, altitudeAccuracy, heading, speed }, timestamp } });
      },
      ({ code, message }) => resolve({ error: { code, message } }),
      options,
    );
  });
};
