//! The data: real harbours with their positions and approximate depths, invented berths and ships.

use serde::{Deserialize, Serialize};

/// Service that a port offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Facility {
    Containers,
    Cruise,
    Ferry,
    Bulk,
    Oil,
    Marina,
    DryDock,
}

/// A port. `id` is its UN/LOCODE.
#[derive(Debug, Serialize)]
pub(crate) struct Port {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) country: &'static str,
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
    /// Deepest draught, in metres.
    pub(crate) max_draught_m: f64,
    pub(crate) facilities: &'static [Facility],
    /// Mean tidal range in metres, and hours after midnight of day 0 of the first high water.
    #[serde(skip)]
    pub(crate) tide: (f64, f64),
    #[serde(skip)]
    pub(crate) berths: &'static [Berth],
}

/// A place to moor.
#[derive(Debug, Serialize)]
pub(crate) struct Berth {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) length_m: u32,
    pub(crate) depth_m: f64,
    pub(crate) shore_power: bool,
}

const fn berth(
    id: &'static str,
    name: &'static str,
    length_m: u32,
    depth_m: f64,
    shore_power: bool,
) -> Berth {
    Berth {
        id,
        name,
        length_m,
        depth_m,
        shore_power,
    }
}

use Facility::{Bulk, Containers, Cruise, DryDock, Ferry, Marina, Oil};

pub(crate) const PORTS: &[Port] = &[
    Port {
        id: "DEHAM",
        name: "Hamburg",
        country: "DE",
        latitude: 53.541,
        longitude: 9.966,
        max_draught_m: 15.1,
        facilities: &[Containers, Cruise, Bulk, DryDock],
        tide: (3.6, 4.1),
        berths: &[
            berth("DEHAM-CTB1", "Burchardkai 1", 400, 16.5, true),
            berth("DEHAM-CTA3", "Altenwerder 3", 350, 16.7, true),
            berth("DEHAM-STW", "Steinwerder", 330, 11.3, true),
            berth("DEHAM-UEB", "Überseebrücke", 185, 8.0, false),
        ],
    },
    Port {
        id: "NLRTM",
        name: "Rotterdam",
        country: "NL",
        latitude: 51.948,
        longitude: 4.142,
        max_draught_m: 22.6,
        facilities: &[Containers, Bulk, Oil, DryDock],
        tide: (1.7, 2.4),
        berths: &[
            berth("NLRTM-MV2A", "Maasvlakte II A", 500, 20.0, true),
            berth("NLRTM-EEC", "Europahaven East", 430, 17.0, true),
            berth("NLRTM-CAL4", "Calandkanaal 4", 410, 22.6, false),
        ],
    },
    Port {
        id: "PTLIS",
        name: "Lisbon",
        country: "PT",
        latitude: 38.706,
        longitude: -9.145,
        max_draught_m: 12.0,
        facilities: &[Containers, Cruise, Marina],
        tide: (2.6, 2.9),
        berths: &[
            berth("PTLIS-SAP", "Santa Apolónia", 675, 12.0, true),
            berth("PTLIS-ALC", "Alcântara", 630, 13.0, false),
        ],
    },
    Port {
        id: "ESBCN",
        name: "Barcelona",
        country: "ES",
        latitude: 41.351,
        longitude: 2.160,
        max_draught_m: 16.0,
        facilities: &[Containers, Cruise, Ferry, Oil, Marina],
        tide: (0.2, 7.5),
        berths: &[
            berth("ESBCN-ADA", "Moll Adossat A", 380, 12.0, true),
            berth("ESBCN-PRAT", "Moll Prat", 500, 16.5, true),
            berth("ESBCN-SBE", "Sant Bertran", 220, 10.0, false),
        ],
    },
    Port {
        id: "ITVCE",
        name: "Venice",
        country: "IT",
        latitude: 45.441,
        longitude: 12.306,
        max_draught_m: 11.5,
        facilities: &[Containers, Cruise, Ferry, Bulk],
        tide: (0.6, 10.2),
        berths: &[
            berth("ITVCE-MAR2", "Marghera 2", 300, 11.5, false),
            berth("ITVCE-FUS", "Fusina Ro-Ro", 220, 9.0, true),
        ],
    },
    Port {
        id: "NOBGO",
        name: "Bergen",
        country: "NO",
        latitude: 60.395,
        longitude: 5.316,
        max_draught_m: 11.0,
        facilities: &[Cruise, Ferry, Marina],
        tide: (1.0, 10.6),
        berths: &[
            berth("NOBGO-SKO", "Skolten", 340, 11.0, true),
            berth("NOBGO-JEK", "Jekteviken", 280, 9.5, true),
            berth("NOBGO-BRY", "Bryggen", 90, 5.5, false),
        ],
    },
    Port {
        id: "SEGOT",
        name: "Gothenburg",
        country: "SE",
        latitude: 57.690,
        longitude: 11.850,
        max_draught_m: 13.5,
        facilities: &[Containers, Ferry, Oil, Cruise],
        tide: (0.3, 5.0),
        berths: &[
            berth("SEGOT-SKA", "Skandiahamnen", 600, 14.0, true),
            berth("SEGOT-MAJ", "Majnabbe", 250, 8.5, true),
        ],
    },
    Port {
        id: "GBDVR",
        name: "Dover",
        country: "GB",
        latitude: 51.121,
        longitude: 1.336,
        max_draught_m: 10.5,
        facilities: &[Ferry, Cruise, Marina],
        tide: (4.6, 11.1),
        berths: &[
            berth("GBDVR-ED7", "Eastern Docks 7", 210, 8.0, true),
            berth("GBDVR-WC1", "Western Cruise 1", 340, 10.5, false),
        ],
    },
    Port {
        id: "FRLEH",
        name: "Le Havre",
        country: "FR",
        latitude: 49.471,
        longitude: 0.154,
        max_draught_m: 17.0,
        facilities: &[Containers, Cruise, Ferry, Oil, Bulk],
        tide: (6.0, 9.8),
        berths: &[
            berth("FRLEH-P2K", "Port 2000", 700, 17.0, true),
            berth("FRLEH-FLO", "Quai de Floride", 310, 11.0, false),
        ],
    },
    Port {
        id: "SGSIN",
        name: "Singapore",
        country: "SG",
        latitude: 1.264,
        longitude: 103.820,
        max_draught_m: 18.0,
        facilities: &[Containers, Cruise, Oil, DryDock, Marina],
        tide: (2.3, 11.6),
        berths: &[
            berth("SGSIN-TUA1", "Tuas 1", 450, 18.0, true),
            berth("SGSIN-MBC", "Marina Bay Cruise Centre", 360, 11.5, true),
        ],
    },
    Port {
        id: "USSEA",
        name: "Seattle",
        country: "US",
        latitude: 47.602,
        longitude: -122.340,
        max_draught_m: 15.2,
        facilities: &[Containers, Cruise, Ferry, Marina],
        tide: (2.3, 5.2),
        berths: &[
            berth("USSEA-T18", "Terminal 18", 400, 15.2, true),
            berth("USSEA-P91", "Pier 91", 360, 11.0, true),
            berth("USSEA-P52", "Pier 52 Colman Dock", 150, 9.0, false),
        ],
    },
    Port {
        id: "NZAKL",
        name: "Auckland",
        country: "NZ",
        latitude: -36.842,
        longitude: 174.766,
        max_draught_m: 12.5,
        facilities: &[Containers, Cruise, Ferry, Marina],
        tide: (2.6, 7.0),
        berths: &[
            berth("NZAKL-FERG", "Fergusson North", 320, 12.5, false),
            berth("NZAKL-QUE", "Queens Wharf", 270, 10.5, true),
        ],
    },
];

/// What kind of ship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShipKind {
    Container,
    Cruise,
    Ferry,
    Tanker,
    BulkCarrier,
    Sail,
}

/// A ship. The IMO numbers have right check digits and are invented like the ships.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ship {
    pub(crate) imo: u32,
    pub(crate) name: &'static str,
    pub(crate) kind: ShipKind,
    pub(crate) flag: &'static str,
    pub(crate) length_m: f64,
    pub(crate) draught_m: f64,
    pub(crate) gross_tonnage: u32,
}

const fn ship(
    imo: u32,
    name: &'static str,
    kind: ShipKind,
    flag: &'static str,
    length_m: f64,
    draught_m: f64,
    gross_tonnage: u32,
) -> Ship {
    Ship {
        imo,
        name,
        kind,
        flag,
        length_m,
        draught_m,
        gross_tonnage,
    }
}

pub(crate) const SHIPS: &[Ship] = &[
    ship(
        9_300_001,
        "Elbe Trader",
        ShipKind::Container,
        "DE",
        366.0,
        14.5,
        141_000,
    ),
    ship(
        9_300_013,
        "Nordlys Express",
        ShipKind::Ferry,
        "NO",
        160.8,
        5.7,
        21_400,
    ),
    ship(
        9_300_025,
        "Adriatic Pearl",
        ShipKind::Cruise,
        "IT",
        294.0,
        8.3,
        92_600,
    ),
    ship(
        9_300_037,
        "Maas Pioneer",
        ShipKind::Tanker,
        "NL",
        333.0,
        20.8,
        160_200,
    ),
    ship(
        9_300_049,
        "Tejo Star",
        ShipKind::BulkCarrier,
        "PT",
        229.0,
        13.9,
        43_700,
    ),
    ship(
        9_300_051,
        "Solent Dawn",
        ShipKind::Ferry,
        "GB",
        185.6,
        6.6,
        30_300,
    ),
    ship(
        9_300_063,
        "Rainier Maru",
        ShipKind::Container,
        "US",
        300.1,
        13.2,
        86_500,
    ),
    ship(
        9_300_075,
        "Hauraki Spirit",
        ShipKind::Sail,
        "NZ",
        55.2,
        4.1,
        480,
    ),
    ship(
        9_300_087,
        "Lion City Bridge",
        ShipKind::Container,
        "SG",
        399.9,
        16.0,
        215_500,
    ),
    ship(
        9_300_099,
        "Göta Lejon",
        ShipKind::Sail,
        "SE",
        47.0,
        5.2,
        620,
    ),
];

pub(crate) fn port(id: &str) -> Option<&'static Port> {
    PORTS.iter().find(|port| port.id.eq_ignore_ascii_case(id))
}

pub(crate) fn ship_by_imo(imo: u32) -> Option<&'static Ship> {
    SHIPS.iter().find(|ship| ship.imo == imo)
}

pub(crate) const NOTICES: &str = "\
NOTICES TO MARINERS, week 47

142  Elbe, Hamburg. Buoy 128 off station, drifting south of the fairway. Pass with care.
143  Nieuwe Waterweg. Dredging between km 1014 and 1016 until Friday. Speed limit 10 knots.
144  Byfjorden, Bergen. Submarine cable work north of Askøy. Keep 0.3 nm clear of the guard vessel.
145  Dover Strait. Fog expected Thursday night, visibility below 0.2 nm. Radar watch advised.
146  Puget Sound. Orca sighted near West Point. Keep 400 yards away and reduce speed.
";
